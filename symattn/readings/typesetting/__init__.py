"""Everything that turns statements into LaTeX: letters, order, scalar expressions, conditions, matrices, softmax.

The face of it is :mod:`symattn.readings.latex`.
"""
