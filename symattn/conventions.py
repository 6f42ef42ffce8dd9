"""Conventions in words, and what frameworks mean by their own names.

:func:`record` writes down every convention of a definition. :data:`CONVENTIONS` has a row for each framework: the field values
that its documented interface implies, the layout of its arrays, its option names, and where that is stated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from symattn import blocks, positionwords
from symattn.combinations import has_lse, weights_in_words
from symattn.errors import UnknownNameError, nearest
from symattn.evaluation import record_algorithms
from symattn.grammarprint import write
from symattn.linear import record_linear

if TYPE_CHECKING:
    from symattn.definition import Definition


@dataclass(frozen=True)
class Convention:
    """What one framework means by its names.

    Parameters
    ----------
    name, title
        The name on the command line, and the function that is meant.
    layout
        ``bhsd`` or ``bshd``.
    causal
        The alignment of ``is_causal`` (or its like).
    fields
        Field values that hold whatever the options are.
    options
        Option name of the framework -> function from its value to field values.
    sources
        What states it: field or ``layout`` or ``causal`` -> source.
    """

    name: str
    title: str
    layout: str
    causal: str
    fields: Mapping[str, Any]
    options: Mapping[str, Callable[[Any], Mapping[str, Any]]] = field(repr=False)
    sources: Mapping[str, str] = field(repr=False)
    finish: Callable[[dict[str, Any]], dict[str, Any]] = field(default=lambda values: values, repr=False)
    """What depends on several options at once."""

    def definition(self, **options: Any) -> Definition:
        """The definition of a call with the framework's own options.

        Raises
        ------
        UnknownNameError
            On an option that the framework does not have; the message names the nearest ones.

        >>> get("mlx").definition(mask="causal", scale="1/8")
        Definition(causal='bottom-right', empty_row='uniform', scale='1/8')
        """
        from symattn.definition import Definition

        values = dict(self.fields)
        for name, value in options.items():
            if name not in self.options:
                raise UnknownNameError(f"{self.title} has no option {name!r}. {nearest(name, self.options)}")
            values |= self.options[name](value)
        values = self.finish(values)
        if values.get("causal") is True:
            values["causal"] = self.causal
        return Definition.of(**values)


def _is_causal(value: Any) -> Mapping[str, Any]:
    return {"causal": True} if value else {}


def _scale(value: Any) -> Mapping[str, Any]:
    return {} if value is None else {"scale": value}


def _windows(value: Any) -> Mapping[str, Any]:
    left, right = (value, value) if isinstance(value, int) else value
    return {"window": (left, right)}


def _given(**values: Any) -> Callable[[Any], Mapping[str, Any]]:
    """An array option: present or not."""
    return lambda value: values if value is not None and value is not False else {}


def _onnx_offsets(values: dict[str, Any]) -> dict[str, Any]:
    """Causal mask and window are measured from the number of valid keys that precede the queries (0 without a cache)."""
    sides = (values.pop("window_left", -1), values.pop("window_right", -1))
    if sides != (-1, -1):
        values["window"] = sides
    past = values.pop("past", None)
    alignment = past if past is not None else "bottom-right" if values.get("key_lengths") else "top-left"
    values["window_alignment"] = alignment
    if values.get("causal"):
        values["causal"] = alignment
    return values


_TORCH = Convention(
    "torch",
    "torch.nn.functional.scaled_dot_product_attention",
    "bhsd",
    "top-left",
    {"empty_row": "zero", "mask_polarity": "attend", "grouping": "interleaved", "lse_base": "e"},
    {
        "is_causal": _is_causal,
        "scale": _scale,
        "enable_gqa": lambda _: {},
        "dropout_p": lambda p: {"dropout": True, "dropout_p": p} if p else {},
        "attn_mask": lambda kind: {"attn_mask": kind} if kind else {},
    },
    {
        "causal": "documentation: torch.ones(L, S).tril(), an upper-left mask",
        "mask_polarity": "documentation: True takes part in attention",
        "grouping": "documentation: key.repeat_interleave(query.size(-3)//key.size(-3), -3)",
        "empty_row": "zeros, since 2.5 (pytorch pull request 133882); measured on 2.13",
        "layout": "documentation: (N, ..., Hq, L, E)",
    },
)
_JAX = Convention(
    "jax",
    "jax.nn.dot_product_attention",
    "bshd",
    "top-left",
    {
        "empty_row": "uniform",
        "mask_polarity": "attend",
        "grouping": "interleaved",
        "window_counts": "distance",
        "window_alignment": "top-left",
        "lse_base": "e",
    },
    {
        "is_causal": _is_causal,
        "scale": _scale,
        "local_window_size": lambda w: {} if w is None else _windows(w),
        "bias": _given(bias=True),
        "mask": _given(attn_mask="boolean"),
        "key_value_seq_lengths": _given(key_lengths=True),
    },
    {
        "causal": "jax/_src/nn/functions.py, _get_causal_mask: tril of (T, S)",
        "mask_polarity": "documentation: True values are attended to",
        "grouping": "jax/_src/nn/functions.py, _dot_product_attention_xla: query reshaped to (B, T, K, G, H)",
        "window_counts": "documentation: window (3, 2) at c covers c-3 to c+2",
        "window_alignment": "jax/_src/nn/functions.py, _get_window_mask",
        "empty_row": "scores are set to a large negative number, so an empty row is the mean of V; measured on 0.10",
        "layout": "documentation: BTNH",
    },
)
_MLX = Convention(
    "mlx",
    "mlx.core.fast.scaled_dot_product_attention",
    "bhsd",
    "bottom-right",
    {"empty_row": "uniform", "mask_polarity": "attend", "grouping": "interleaved", "lse_base": "e"},
    {
        "scale": _scale,
        "mask": lambda kind: _is_causal(True) if kind == "causal" else {"attn_mask": kind} if kind else {},
        "sinks": _given(sink=True, empty_row="zero"),
    },
    {
        "causal": "documentation: the causal mask is lower-right aligned (mlx pull request 2967)",
        "mask_polarity": "documentation: False is masked out",
        "empty_row": "scores are set to the least finite number, so an empty row is the mean of V (mlx issue 2395)",
        "grouping": "documentation: keys and values should not be tiled to match queries",
        "layout": "documentation: (B, N, T, D)",
    },
)
_ONNX = Convention(
    "onnx",
    "the ONNX operator Attention (23 to 25)",
    "bhsd",
    "top-left",
    {
        "empty_row": "zero",
        "mask_polarity": "attend",
        "grouping": "interleaved",
        "window_counts": "distance",
        "window_alignment": "top-left",
        "lse_base": "e",
        "lse": False,
    },
    {
        "is_causal": _is_causal,
        "scale": _scale,
        "softcap": lambda cap: {"softcap": cap} if cap else {},
        "q_num_heads": lambda h: {"heads": h} if h else {},
        "kv_num_heads": lambda h: {"kv_heads": h} if h else {},
        "left_window_size": lambda w: {"window_left": w},
        "right_window_size": lambda w: {"window_right": w},
        "attn_mask": lambda kind: {"attn_mask": kind} if kind else {},
        "past_key": lambda length: {"past": int(length)} if length else {},
        "nonpad_kv_seqlen": _given(key_lengths=True),
    },
    {
        "causal": "onnx/reference/ops/op_attention.py: offset 0 without a cache, past length or nonpad_kv_seqlen - n with one",
        "mask_polarity": "operator text: True takes part in attention",
        "grouping": "operator text and reference: each key/value head is repeated next to itself",
        "window_counts": "opset 25 text: p - left <= j <= p + right",
        "empty_row": "operator text: a fully masked row gives 0 (onnx pull request 8068)",
        "layout": "operator text: (batch, heads, sequence, head size); 3-D inputs hold the heads side by side",
    },
    _onnx_offsets,
)

CONVENTIONS: Mapping[str, Convention] = {c.name: c for c in (_TORCH, _JAX, _MLX, _ONNX)}


def get(name: str) -> Convention:
    """The convention of a framework by name.

    Raises
    ------
    UnknownNameError
        With the nearest names.

    >>> get("jax").layout
    'bshd'
    """
    if name not in CONVENTIONS:
        raise UnknownNameError(f"no convention is called {name!r}. {nearest(name, CONVENTIONS)}")
    return CONVENTIONS[name]


def record(d: Definition) -> dict[str, str]:
    """Every convention of a definition in words, in a fixed order; those that do not apply say so."""
    from symattn.keep import offset
    from symattn.letters import Letters

    at = Letters(one_source=d.start != "qkv" and not d.cross)

    def aligned(alignment: str | int | None) -> str:
        if alignment is None:
            return "none"
        word = alignment if isinstance(alignment, str) else f"offset {alignment}"
        return f"{word}: j <= {at['i'] + offset(d, at, alignment)}"

    words = {
        "heads": "as given" if d.heads is None else f"{d.heads} query heads, {d.kv_heads} key/value heads",
        "grouping": {"interleaved": "interleaved: h reads h // (H/H_kv)", "tiled": "tiled: h reads h mod H_kv"}[d.grouping],
        "start": _start(d),
        "scale": "1/sqrt(d)" if d.scale is None else write(d.scale),
        "softcap": "none" if d.softcap is None else f"{d.softcap}, before the mask",
        "score": "none" if d.score is None else write(d.score),
        "alibi": _alibi(d),
        "bias": "given, finite" if d.bias else "none",
        "causal": aligned(d.causal) + ("" if d.prefix is None else f" or j < {d.prefix}"),
        "window": _window(d),
        "mask": "none" if d.mask is None else write(d.mask),
        "attn_mask": "none" if d.attn_mask is None else f"{d.attn_mask}: {_polarity(d)}",
        "document": "doc_q[i] == doc_k[j]" if d.document else "none",
        "key_lengths": "keys from a given length on are padding" if d.key_lengths else "none",
        "sink": "a logit per head in the denominator; no value row; included in LSE" if d.sink else "none",
        "dropout": "none" if not d.dropout else f"given keep-mask; kept weights times 1/(1 - {d.dropout_p or 'p'})",
        "empty_row": _empty(d),
        "lse": "there is none"
        if not has_lse(d)
        else "not an output"
        if not d.lse
        else "natural logarithm"
        if d.lse_base == "e"
        else "base 2",
    }
    words |= weights_in_words(d)
    words |= record_linear(d)
    words |= record_algorithms(d)
    words |= positionwords.words(d)
    words |= blocks.words(d)
    if d.params:
        words["params"] = ", ".join(f"{k} = {_value(v)}" for k, v in d.params.items())
    return words


def _value(value: Fraction | tuple[Fraction, ...] | str) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(map(str, value)) + ")"
    return "one input per head" if value == "head" else str(value)


def _start(d: Definition) -> str:
    start = {
        "qkv": "Q, K and V are given",
        "x": "projections of X",
        "tokens": "projections of X, which is looked up in an embedding table",
    }
    return (
        start[d.start]
        + ("; K and V of the memory" if d.cross else "")
        + ("; heads combined by W_O" if d.output_projection else "")
    )


def _alibi(d: Definition) -> str:
    if not d.alibi:
        return "none"
    slopes = {
        "given": "given slopes",
        "power": "slopes 2^(-8(h+1)/H)",
        "interleaved": "slopes of the nearest lower power of two, then every other one of the next",
    }[d.alibi_slopes]
    return f"-slope*{'|i - j|' if d.alibi_distance == 'absolute' else '(i - j)'} with {slopes}, i measured as windows are"


def _window(d: Definition) -> str:
    if d.window is None:
        return "none"
    left, right = ("unlimited" if w is None else str(w) for w in d.window)
    counted = "keys, the query's own position counted" if d.window_counts == "keys" else "as a distance"
    alignment = d.window_alignment if d.window_alignment is not None else d.causal if d.causal is not None else "bottom-right"
    return f"left {left} ({counted}), right {right}, measured from the {alignment} diagonal"


def _polarity(d: Definition) -> str:
    if d.attn_mask == "additive":
        return "added to the score, -inf drops the key"
    return "True attends" if d.mask_polarity == "attend" else "True drops"


def _empty(d: Definition) -> str:
    if d.sink:
        return "output 0, LSE is the sink"
    if d.normalizer == "off-by-one":
        return "output 0, LSE 0"
    out = {"zero": "output 0", "nan": "output NaN", "uniform": "output is the mean of V over all keys", "error": "an error"}[
        d.empty_row
    ]
    return out if d.empty_row == "error" or not has_lse(d) else f"{out}, LSE -inf"
