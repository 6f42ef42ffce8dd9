"""What an attention variant says: its conventions as named fields, and the program that they make.

Nothing is implied: where shipped kernels differ, a field says which reading holds, its default is the first choice of the
table below, and :meth:`Definition.conventions` records every one of them for reports and derivations.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import sympy as sp

from symattn.combinations import has_lse
from symattn.contradictions import check_parameters, refuse_contradictions
from symattn.errors import UnknownFieldError, nearest
from symattn.grammar import arrays_of, parameters_of
from symattn.grammarprint import write_value
from symattn.indexed import Table
from symattn.program import Program
from symattn.settings import read_field

if TYPE_CHECKING:
    from typing import Unpack

    from symattn.fieldtypes import FieldValues


@dataclass(frozen=True, kw_only=True, init=False)
class Definition:
    """``O = softmax(scale * Q K^T) V`` with everything that a variant changes, as named fields.

    Every field takes a Python value or its text (``window=(4, 0)`` or ``"4,0"``); numbers are kept exactly.

    Parameters
    ----------
    heads, kv_heads
        Number of query heads and of key/value heads. None: taken from the arrays, and a single head in formulas.
    start
        ``"qkv"``: Q, K and V are given; ``"x"``: they are projections of X; ``"tokens"``: X is looked up in an embedding table.
    cross
        K and V are projections of a second source, the memory C (with ``start`` x or tokens).
    output_projection
        The heads' outputs are combined by W_O; ``out`` is the result.
    projection_bias
        Every projection (of Q, K, V, and W_O) adds a vector of its own.
    causal
        None; ``"top-left"``: j <= i; ``"bottom-right"``: j <= i + m - n; an integer k: j <= i + k. True means top-left.
    window
        ``(left, right)``, measured from i + offset of the causal alignment; None or -1 is unlimited.
    window_counts
        ``"keys"``: i - j < left (the query's own position counts); ``"distance"``: i - j <= left. Right is always a distance.
    window_alignment
        The alignment that windows and ALiBi are measured from; None: the causal one, bottom-right where not causal.
    prefix
        The first keys are visible to every query: j <= i or j < prefix. A number, or the name of an input.
    document
        doc_q[i] == doc_k[j], for given document numbers.
    key_lengths
        Keys from a given length on are padding; bottom-right is then measured from this length.
    attn_mask, mask_axes, mask_polarity
        A given ``"boolean"`` or ``"additive"`` mask, which of b, h, i, j it carries (None: all, or what a given array shows), and
        whether True means attend or drop. -inf in an additive mask drops the key.
    bias, bias_axes
        A given, finite bias added to the score.
    softcap
        ``softcap * tanh(score / softcap)``, before the mask. A number, or the name of an input.
    alibi, alibi_slopes, alibi_distance
        ``-slope_h * (i - j)``; slopes ``"given"``, ``"power"``: 2^(-8(h+1)/H), ``"interleaved"``: the published set for head
        counts that are no power of two; ``"absolute"``: -slope_h * |i - j|.
    sink
        A learned logit per head in the denominator.
    empty_row
        The output of a query without keys: ``"zero"``, ``"nan"``, ``"uniform"`` (mean of V over all keys), ``"error"``.
        Its LSE is -inf.
    grouping
        Query head h reads key/value head h // (H/H_kv) (``"interleaved"``) or h mod H_kv (``"tiled"``).
    scale
        None: 1/sqrt(d). Else a number or text in n, m, d, dv and parameters.
    lse, lse_base
        Whether the log-sum-exp is an output, and its base; never where the normalizer has none, or where there are two maps.
    dropout, dropout_p
        A given keep-mask and rate: kept weights are multiplied by 1/(1 - p).
    score, mask
        One's own: text (see :mod:`symattn.grammar`) or SymPy in ``s i j h b n m d`` and parameters. ``s`` is the score so far,
        scaled and capped.
    params
        Exact values of parameters: a number, a list (one per head), or ``"head"`` for an unbound one that has a value per head.
    form, algorithm, block
        Which list of statements is written: ``"softmax"`` attention or another family of :mod:`symattn.forms`; and the order of
        evaluation of a kernel (``"online"``, ``"flash"``, ``"split"``, ``"ring"``, ``"paged"``) with its block of keys.
    positions
        What is added to X: a ``"sinusoidal"`` or ``"learned"`` positional encoding (with ``start`` x or tokens).
    next_word
        The outputs include the next-word probabilities: the softmax of the context vectors times the embedding table.
    similarity
        ``"dot"``: q.k; ``"general"``: q W k; ``"additive"``: w.tanh(W q + U k); ``"concat"``: w.tanh(W [q; k]).
    rope, rope_dim, rope_frequencies, rope_amplitude, rope_offset
        Rotary positions: pairs ``"half"`` (c, c + r/2) or ``"interleaved"`` (2c, 2c + 1) of the first r = ``rope_dim`` channels
        (None: all d); the angle of pair p at position i is i times ``rope_frequencies``, text in p, r and parameters (None:
        10000^(-2p/r)); ``rope_amplitude`` multiplies the rotation; query positions start at ``rope_offset`` (None: 0,
        ``"bottom-right"``: m - n, or a number).
    qk_norm, qk_norm_weight, qk_norm_eps, qk_norm_order
        Queries and keys are divided by their ``"rms"`` or ``"l2"`` norm, with a learned weight per channel, ``eps`` under the
        root, before or after the rotation.
    key_smoothing
        The mean of all keys that exist is taken off every key, before norm and rotation.
    relative, relative_clip
        ``"keys"``: a learned vector of the distance is added to the key; ``"recurrent"``: (q + u).k + (q + v).r of the distance.
        With ``relative_clip`` k the table has 2k + 1 rows, row k + i - j (i measured as windows are) and the ends beyond;
        without, n + m - 1 rows, row i - j + m - 1.
    buckets
        A learned bias per head and bucket; the bucket of every (i, j) is given, for example by
        :func:`symattn.positions.relative_buckets`.
    normalizer
        How scores become weights: ``"softmax"``, ``"off-by-one"``, ``"sigmoid"``, ``"sparsemax"``, ``"entmax15"``,
        ``"stick-breaking"``, ``"none"``.
    forgetting
        The logarithms of given forget gates between key and query are added to the score.
    differential
        The difference of two attention maps, the second with queries and keys of its own.
    head_mixing, multi_token
        Scores, weights or both are mixed across heads; scores are convolved over (cq, ck) queries and keys.
    output_gate
        The output is multiplied by the sigmoid of a gate.
    head_norm, head_norm_eps
        The output of every head is divided by its root mean square, with ``eps`` under the root, and multiplied by a learned
        weight per channel; of a differential map by ``1 - lambda_init`` too.
    layer_norm, layer_norm_eps, activation
        Of a layer form: norm after (``"post"``) or before each block, what stands under its root beside the variance, and the
        function between the two linear maps, ``"relu"`` or ``"gelu"`` (by the error function).

    feature, normalized
        Of the form ``"linear"``: the map of each entry of queries and keys (``"identity"``, ``"elu"``: elu(s) + 1, ``"relu"``,
        ``"exp"``, or text in the entry s and parameters); whether weights are divided by their sum over the keys.
    decay, decay_space
        How the state fades before each step writes: by a factor per ``"head"``, by that of the ``"retention"`` paper,
        1 - 2^(-5-h), by one per head and ``"step"``, or one per step and key ``"channel"``; the array holds the factors
        (``"linear"``) or their logarithms (``"log"``).
    delta
        The delta rule: a step writes beta times what the faded state does not yet say, v - k state.
    evaluation
        ``"parallel"``, ``"recurrent"`` or ``"chunked"`` (chunks of ``block`` steps).
    initial_state
        The state before the first step is given.

    Raises
    ------
    DefinitionError
        On a value that a field does not allow and on fields that contradict each other.
    UnknownFieldError
        On a field that does not exist.
    GrammarError, LimitError
        On text outside the grammar.

    >>> print(Definition(causal="top-left", lse=False).program())
    R[i, j] = sum over c of K[j, c]*Q[i, c]   where j <= i
    scale = 1/sqrt(d)
    S[i, j] = scale*R[i, j]   where j <= i
    m[i] = max over j of S[i, j]   where j <= i
    E[i, j] = exp(S[i, j] - m[i])   where j <= i
    l[i] = sum over j of E[i, j]   where j <= i
    P[i, j] = E[i, j]/l[i]   where j <= i
    O[i, e] = sum over j of P[i, j]*V[j, e]   where j <= i
    """

    heads: int | None = None
    kv_heads: int | None = None
    start: str = "qkv"
    cross: bool = False
    output_projection: bool = False
    projection_bias: bool = False
    causal: str | int | None = None
    window: tuple[int | None, int | None] | None = None
    window_counts: str = "keys"
    window_alignment: str | int | None = None
    prefix: int | str | None = None
    document: bool = False
    key_lengths: bool = False
    attn_mask: str | None = None
    mask_axes: str | None = None
    mask_polarity: str = "attend"
    bias: bool = False
    bias_axes: str | None = None
    softcap: Fraction | str | None = None
    alibi: bool = False
    alibi_slopes: str = "given"
    alibi_distance: str = "signed"
    sink: bool = False
    empty_row: str = "zero"
    grouping: str = "interleaved"
    scale: sp.Expr | None = None
    lse: bool = True
    lse_base: str = "e"
    dropout: bool = False
    dropout_p: Fraction | str | None = None
    score: sp.Expr | None = None
    mask: sp.Basic | None = None
    params: Mapping[str, Any] = Table()
    form: str = "softmax"
    algorithm: str | None = None
    block: int | None = None
    positions: str | None = None
    next_word: bool = False
    similarity: str = "dot"
    rope: str | None = None
    rope_dim: int | None = None
    rope_frequencies: sp.Expr | None = None
    rope_amplitude: sp.Expr | None = None
    rope_offset: str | int | None = None
    qk_norm: str | None = None
    qk_norm_weight: bool = False
    qk_norm_eps: Fraction | str | None = None
    qk_norm_order: str = "before-rope"
    key_smoothing: bool = False
    relative: str | None = None
    relative_clip: int | None = None
    buckets: bool = False
    normalizer: str = "softmax"
    forgetting: bool = False
    differential: bool = False
    head_mixing: str | None = None
    multi_token: tuple[int, int] | None = None
    output_gate: bool = False
    head_norm: bool = False
    head_norm_eps: Fraction | str = Fraction(1, 100_000)
    layer_norm: str = "post"
    layer_norm_eps: Fraction | str = Fraction(1, 100_000)
    activation: str = "relu"
    feature: str | sp.Expr = "identity"
    normalized: bool = False
    decay: str | None = None
    decay_space: str = "linear"
    delta: bool = False
    evaluation: str = "parallel"
    initial_state: bool = False

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[FieldValues]) -> None: ...
    else:

        def __init__(self, **values: Any) -> None:
            known = {f.name: f.default for f in fields(self)}
            for name in values:
                if name not in known:
                    raise UnknownFieldError(f"a definition has no field {name!r}. {nearest(name, known)}")
            for name, default in known.items():
                object.__setattr__(self, name, read_field(name, values.get(name, default)))
            self._settle()

    def _settle(self) -> None:
        """What fields imply for others, and what they must not say together."""
        if self.form != "softmax":
            from symattn import forms

            for name, value in forms.get(self.form).implies.items():
                if getattr(self, name) == type(self).__dataclass_fields__[name].default:
                    object.__setattr__(self, name, value)
        if self.prefix is not None and self.causal is None:
            object.__setattr__(self, "causal", "top-left")
        if self.kv_heads is not None and self.heads is None:
            object.__setattr__(self, "heads", self.kv_heads)
        if self.heads is not None and self.kv_heads is None:
            object.__setattr__(self, "kv_heads", self.heads)
        if not has_lse(self):
            object.__setattr__(self, "lse", False)
        refuse_contradictions(self)
        check_parameters(self)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """A definition from field values that type checkers need not know."""
        return cls(**values)

    def replace(self, **changes: Any) -> Self:
        """The definition with some fields changed.

        >>> Definition(heads=4, kv_heads=2).replace(causal="top-left", heads=2).kv_heads
        2
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if "heads" in changes and "kv_heads" not in changes and self.kv_heads == self.heads:
            values["kv_heads"] = None
        return type(self).of(**{**values, **changes})

    @property
    def changed(self) -> dict[str, Any]:
        """The fields that are not at their default.

        >>> Definition(softcap=20, heads=2).changed
        {'heads': 2, 'kv_heads': 2, 'softcap': Fraction(20, 1)}
        """
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    @property
    def core(self) -> Self:
        """The attention of given Q, K, V that this definition contains: without projections, embedding and W_O.

        A form that starts from other tensors is itself.
        """
        from symattn import forms

        if forms.sources_of(self) or "start" in forms.get(self.form).implies:
            return self
        plain = {"start": "qkv", "cross": False, "output_projection": False, "projection_bias": False}
        return self.replace(**plain, positions=None, next_word=False)

    @property
    def without_tiles(self) -> Self:
        """The definition without an algorithm that goes by tiles of keys: what it reads and gives is the same."""
        return self if self.algorithm in (None, "paged") else self.replace(algorithm=None, block=None)

    @property
    def head_counts(self) -> tuple[int, int]:
        """Query heads and key/value heads of the program: as fixed, else as many as a list of parameters has values, else one."""
        lists = [len(v) for v in self.params.values() if isinstance(v, tuple)]
        heads = self.heads or (lists[0] if lists else 1)
        return heads, self.kv_heads or heads

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters that the fields read, bound or not, sorted."""
        found: set[str] = set()
        for e in (self.score, self.mask, self.scale, self.rope_frequencies, self.rope_amplitude, self.feature):
            if isinstance(e, sp.Basic):
                found |= set(parameters_of(e))
        named = (self.softcap, self.prefix, self.dropout_p, self.qk_norm_eps, self.layer_norm_eps, self.head_norm_eps)
        found |= {x for x in named if isinstance(x, str)}
        return tuple(sorted(found))

    @cached_property
    def arrays(self) -> dict[str, str]:
        """The arrays that the score and the mask read by subscript, and their axes.

        >>> Definition(mask="j <= i and lane[i] == owner[j]").arrays
        {'lane': 'i', 'owner': 'j'}
        """
        found: dict[str, str] = {}
        for e in (self.score, self.mask):
            found |= arrays_of(e) if e is not None else {}
        return found

    @property
    def unbound(self) -> tuple[str, ...]:
        """The parameters that ``params`` gives no value: they are inputs."""
        return tuple(p for p in self.parameters if self.params.get(p, "head") == "head")

    def program(self, batch: bool = False) -> Program:
        """The statements of this definition, for all sizes; with a batch axis where ``batch`` is true.

        The outputs are ``O`` (``Y`` after W_O) and, where ``lse`` is true, ``L``.
        """
        from symattn.building import build

        return build(self, batch)

    def conventions(self) -> dict[str, str]:
        """Every convention, in words: what reports and derivations record.

        >>> Definition(causal="bottom-right").conventions()["causal"]
        'bottom-right: j <= i + m - n'
        """
        from symattn.conventions import record

        return record(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in self.changed.items())})"


if not TYPE_CHECKING:
    # what help and notebooks show: the fields with their defaults
    Definition.__init__.__signature__ = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY),
            *(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default) for f in fields(Definition)),
        ]
    )


def _shown(value: Any) -> str:
    if isinstance(value, (str, sp.Basic)):
        return repr(write_value(value))
    return str(value) if isinstance(value, Fraction) else repr(value)
