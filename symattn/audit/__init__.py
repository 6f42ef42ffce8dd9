"""Published worked examples, checked: which printed numbers are right, which are not, and where it first went wrong.

:mod:`symattn.audit.printed` knows numbers as they are printed, and the verdicts on them; :mod:`symattn.audit.language` reads formulas
of LaTeX, Markdown and plain text; the other modules check articles as they are and claims files.
"""
