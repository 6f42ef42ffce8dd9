"""The programs that kernels run and are bounded by, kept once derived; the truth has its own, by the raw rule."""

from __future__ import annotations

from functools import lru_cache

from symattn.adjoint import adjoint
from symattn.arithmetic import Arithmetic
from symattn.presentation import Presented, present
from symattn.program import Program
from symattn.verify import lists

__all__ = ["followed", "presented", "staged"]


@lru_cache(maxsize=256)
def presented(program: Program) -> Presented:
    """The gradient of a program in the form that people know."""
    return present(program, adjoint(program))


@lru_cache(maxsize=512)
def _followed(program: Program, arithmetic: Arithmetic, gradient: bool) -> Program:
    return lists.kernel_program(program, presented(program) if gradient else None, arithmetic)


def followed(program: Program, arithmetic: Arithmetic, *, gradient: bool) -> Program:
    """The list that a kernel of a declared arithmetic follows; with ``gradient`` the backward too."""
    return _followed(program, arithmetic, gradient)


@lru_cache(maxsize=256)
def staged(whole: Program, saved: tuple[str, ...]) -> Program:
    """The part of a list that starts from saved tensors."""
    return lists.staged(whole, saved)
