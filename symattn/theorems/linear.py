"""Theorems about the linear family: its evaluations give the same outputs, for all sizes and all chunk lengths."""

from __future__ import annotations

from collections.abc import Callable

from symattn.errors import NotStatedError
from symattn.theorems.claim import Claim
from symattn.theorems.recurrences import SameOutputs
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Theorem

__all__ = ["ROWS"]

CAUSAL = {"form": "linear", "causal": "top-left", "scale": "1"}


def _evaluations(evaluation: str, text: str, causal: bool = True, delta: bool = False) -> Callable[[Subject], tuple[Claim, ...]]:
    """The parallel evaluation of a definition and another one."""

    def claims(s: Subject) -> tuple[Claim, ...]:
        d = s.definition
        if d.form != "linear" or (d.causal is not None) != causal or d.delta != delta:
            kind = "the delta rule" if delta else "linear attention"
            raise NotStatedError(f"this definition is not {kind} {'with' if causal else 'without'} a causal mask")
        plain = d.replace(evaluation="parallel", block=None)
        return (SameOutputs(plain.program(), d.replace(evaluation=evaluation, block=None).program(), text),)

    return claims


ROWS: tuple[Theorem, ...] = (
    Theorem(
        "linear-associative",
        "Linear attention: the keys can be summed first",
        "Without a causal mask phi(q) (sum_j phi(k_j) v_j^T) / phi(q) (sum_j phi(k_j)) is the weighted sum of the values.",
        r"\frac{\sum_j (\phi(q)^\top\phi(k_j))\, v_j}{\sum_j \phi(q)^\top\phi(k_j)} = "
        r"\frac{\phi(q)^\top \sum_j \phi(k_j) v_j^\top}{\phi(q)^\top \sum_j \phi(k_j)}",
        "arXiv 2006.16236, section 3.2",
        _evaluations("recurrent", "the weighted sum of the values is the query applied to the summed state", causal=False),
        home={"form": "linear", "feature": "elu", "normalized": True},
    ),
    Theorem(
        "linear-recurrent",
        "Linear attention: parallel = recurrent",
        "Weights of all pairs give what a state gives that fades, is written to and is read step by step; normalised or not.",
        r"\sum_{j\le t} (q_t^\top k_j)\, v_j^\top = q_t^\top S_t,\qquad S_t = S_{t-1} + k_t v_t^\top",
        "arXiv 2006.16236, section 3.3",
        _evaluations("recurrent", "the output of the weights is that of the state"),
        home={"form": "linear", "causal": "top-left", "feature": "elu", "normalized": True},
    ),
    Theorem(
        "retention",
        "Retention: parallel = recurrent",
        "Scores times gamma^(i-j) give what a state gives that fades by gamma at every step.",
        r"\sum_{j\le t} \gamma^{t-j} (q_t^\top k_j)\, v_j^\top = q_t^\top S_t,\qquad S_t = \gamma S_{t-1} + k_t v_t^\top",
        "arXiv 2307.08621, section 2.1",
        _evaluations("recurrent", "the output of the decayed weights is that of the fading state"),
        home={**CAUSAL, "decay": "head"},
    ),
    Theorem(
        "gated-recurrent",
        "Gated linear attention: parallel = recurrent",
        "Products of gates between two steps give what a state gives each channel of which fades by the gate of the step.",
        r"S_t = \mathrm{diag}(a_t)\, S_{t-1} + k_t v_t^\top,\qquad "
        r"q_t^\top S_t = \sum_{j\le t}\sum_c q_{tc} k_{jc} \prod_{j<s\le t} a_{sc}\, v_j^\top",
        "arXiv 2312.06635, section 4",
        _evaluations("recurrent", "the output of the gated weights is that of the gated state"),
        home={**CAUSAL, "decay": "channel", "initial_state": True},
    ),
    Theorem(
        "linear-chunked",
        "Linear attention: parallel = chunked",
        "Pairs inside a chunk and a state passed from chunk to chunk give the same output for any chunk length.",
        r"o_i = \Lambda_i\, q_i^\top S_{x(i)-1} + \sum_{j\le i,\; x(j) = x(i)} \Gamma_{ij} (q_i^\top k_j)\, v_j",
        "arXiv 2312.06635, section 4; arXiv 2307.08621, section 2.1",
        _evaluations("chunked", "the output of all pairs is that of chunks and the passed state"),
        home={**CAUSAL, "decay": "channel"},
    ),
    Theorem(
        "delta-rule",
        "Delta rule: parallel = recurrent",
        "The values that are written solve a triangular system: forward substitution gives what the state gives step by step.",
        r"S_t = a_t S_{t-1} + \beta_t k_t (v_t - (a_t S_{t-1})^\top k_t)^\top",
        "arXiv 2406.06484, section 3; arXiv 2412.06464, section 3.1",
        _evaluations("recurrent", "the output of the triangular system is that of the state", delta=True),
        home={**CAUSAL, "delta": True, "decay": "step"},
    ),
    Theorem(
        "delta-rule-chunked",
        "Delta rule: the WY form of a chunk",
        "Two substitutions in each chunk, for the values and for the entering state, give the same output for any chunk length.",
        r"\tilde V = V_{\mathrm{w}} - K_{\mathrm{w}} S_{x-1},\qquad S_x = \Delta_x S_{x-1} + (\Omega\circ K)^\top \tilde V",
        "arXiv 2406.06484, section 3",
        _evaluations("chunked", "the output of the triangular system is that of the WY form", delta=True),
        home={**CAUSAL, "delta": True, "decay": "step"},
    ),
)
"""The rows of this family."""
