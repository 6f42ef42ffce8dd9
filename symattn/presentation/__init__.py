"""Derived lists in the form that people know: rules as data, each rewriting proved for all sizes or checked and labelled so.

:func:`present` brings a raw gradient to ``D``, ``dS = P∘(dP - D)``, ``dV``, ``dQ``, ``dK``; :func:`refold` reads ``D`` from the
output; :func:`normalise_last` and :func:`recompute` bring program and gradient to the lists that flash kernels run, and
:func:`through_lse` to that of kernels that hold log-probabilities;
:func:`present_tangent` brings a tangent to ``dot P = P∘(dot S - dot L)``.
"""

from symattn.presentation.driver import present, refold
from symattn.presentation.logarithm import through_lse
from symattn.presentation.normalise import normalise_last
from symattn.presentation.presented import Presented, Step
from symattn.presentation.recompute import recompute
from symattn.presentation.tangents import present_tangent

__all__ = ["Presented", "Step", "normalise_last", "present", "present_tangent", "recompute", "refold", "through_lse"]
