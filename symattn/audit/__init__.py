"""Published worked examples, checked: which printed numbers are right, which are not, and where it first went wrong.

:mod:`symattn.audit.printed` says what a printed number claims and judges it against an exact value;
:mod:`symattn.audit.exactness` compares exact values with rational numbers, rigorously.
"""
