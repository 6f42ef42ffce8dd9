"""Published worked examples, checked: which printed numbers are right, which are not, and where it first went wrong.

Two kinds of input, one kind of answer (:mod:`symattn.audit.findings`). Articles are read by the language of formulas and checked
link by link; claims files (:mod:`symattn.audit.claimsfile`, :mod:`symattn.audit.page`) name quantities of a definition's program.
:mod:`symattn.audit.printed` says what a printed number claims and judges it against an exact value;
:mod:`symattn.audit.exactness` compares exact values with rational numbers, rigorously.
"""
