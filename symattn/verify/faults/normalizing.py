"""Faults of the softmax, its log-sum-exp, sinks and dropout in the forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import sympy as sp

from symattn.indexed import all_reads, name_of, tensor
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Fault, Prediction, Predictions, Situation
from symattn.verify.faults.heads import other_heads
from symattn.verify.faults.results import in_empty_rows, multiplied
from symattn.verify.faults.structure import I, J, Softmax, fresh, softmax_of

Rewrite = Callable[[Situation], Iterator[Alternative]]


def _over_queries(s: Situation) -> Iterator[Alternative]:
    """Weights that sum to 1 over the queries; the log-sum-exp stays that of the row."""
    found = softmax_of(s.program)
    if found is None or not isinstance(found.score, sp.Indexed) or s.definition.sink or s.definition.normalizer != "softmax":
        return
    p, score = s.program, found.score
    at = tuple(a for a in found.weight.indices if a != I)
    top, weight, total = (fresh(p, x) for x in ("mcol", "Ecol", "lcol"))
    where = found.weight.where
    new = [
        Statement(tensor(top, *at), score, (I,), "max", where=where, range_only=True, aux=True),
        Statement(tensor(weight, *found.weight.indices), sp.exp(score - tensor(top, *at)), where=where, aux=True),
        Statement(tensor(total, *at), tensor(weight, *found.weight.indices), (I,), where=where, aux=True),
        replace(found.weight, expr=tensor(weight, *found.weight.indices) / tensor(total, *at)),
    ]
    yield Alternative(program=p.with_statements([y for x in p for y in (new if x.name == found.weight.name else (x,))]).live())


def _unnormalised(s: Situation) -> Iterator[Alternative]:
    found = softmax_of(s.program)
    if found is not None:
        yield Alternative(program=_with(s, {found.weight.name: found.normalisation.numerator}))


def _squared(s: Situation) -> Iterator[Alternative]:
    found = softmax_of(s.program)
    if found is not None:
        yield Alternative(program=_with(s, {found.weight.name: found.weight.expr / found.normalisation.divisor}))


def _with(s: Situation, exprs: dict[str, sp.Expr]) -> Program:
    return s.program.with_statements([replace(x, expr=exprs.get(x.name, x.expr)) for x in s.program]).live()


def _lse(change: Callable[[Softmax, Situation], sp.Expr | None]) -> Rewrite:
    """Another expression of the log-sum-exp; the output, and the gradients of a backward that works from it, as they are."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        found = softmax_of(s.program)
        if found is None or found.lse is None:
            return
        new = change(found, s)
        if new is not None:
            name = found.lse.name
            yield Alternative(edit=lambda p: p.with_statements([replace(x, expr=new) if x.name == name else x for x in p]).live())

    return rewrite


def _keys_alone(found: Softmax, s: Situation) -> sp.Expr | None:
    """Without the sink: the sum over the keys, and its own maximum."""
    if not (s.definition.sink or s.definition.normalizer == "off-by-one") or found.lse is None:
        return None
    total = found.normalisation.total
    return found.lse.expr.xreplace({found.normalisation.divisor: total.target})


def _other_base(s: Situation) -> Iterator[Alternative]:
    if s.definition.lse:
        to = "2" if s.definition.lse_base == "e" else "e"
        yield from s.changed("", lse_base=to)


def _lse_factors(s: Situation) -> Iterator[Alternative]:
    d = s.sizes.get("D", 1)
    if "L" not in s.program.outputs:
        return
    for label, f in (
        ("-1", -1.0),
        ("ln 2, of a natural one", np.log(2)),
        ("1/sqrt(d)", d**-0.5),
        ("sqrt(d)", d**0.5),
        ("1/ln 10", 1 / np.log(10)),
    ):
        if f != 1:
            yield Alternative(label, after=multiplied(("lse",), f))


def _infinite(s: Situation) -> Iterator[Alternative]:
    """The log-sum-exp of a row without keys is +infinity, 0 or NaN."""
    for label, value in (("+inf", np.inf), ("0", 0.0), ("NaN", np.nan)):

        def after(_: Situation, p: Predictions, value: float = value) -> Predictions:
            if "lse" not in p:
                return p
            empty = np.isneginf(p["lse"].value)
            return {**p, "lse": Prediction(np.where(empty, value, p["lse"].value), np.where(empty, 0.0, p["lse"].reach))}

        if not s.definition.sink and "L" in s.program.outputs:
            yield Alternative(label, after=after)


def _no_sink(s: Situation) -> Iterator[Alternative]:
    if s.definition.sink:
        yield from s.changed("", after=_without_sinks(s), sink=False)
    if s.definition.normalizer == "off-by-one":
        yield from s.changed("", normalizer="softmax")


def _without_sinks(s: Situation) -> Callable[[Situation, Predictions], Predictions]:
    """A kernel without the sink has a gradient of 0 for it."""

    def after(_: Situation, p: Predictions) -> Predictions:
        zero = np.zeros(s.fields["sinks"].shape)
        return {**p, "grad_sinks": Prediction(zero, zero)} if any(n.startswith("grad_") for n in p) else p

    return after


def _sink(change: Callable[[sp.Expr, Softmax], sp.Expr]) -> Rewrite:
    """Another expression of what the sink adds to the normaliser: a function of it and the softmax."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        found = softmax_of(s.program)
        if found is not None and s.definition.sink and "E0" in s.program:
            yield Alternative(program=_with(s, {"E0": change(s.program["E0"].expr, found)}))

    return rewrite


def _sink_unmeasured(s: Situation) -> Iterator[Alternative]:
    """The sink added as exp(sink), the maximum that of the keys and the sink, or that of the keys."""
    yield from _sink(lambda e, f: e.xreplace({f.shift: sp.Integer(0)}))(s)
    found = softmax_of(s.program)
    if found is None or not s.definition.sink or "E0" not in s.program or not isinstance(found.shift, sp.Indexed):
        return
    top = s.program[name_of(found.shift)]
    keys = [x for x in all_reads(top.expr) if name_of(x) in s.program and s.program[name_of(x)].range_only]
    if len(keys) == 1:
        own = s.program["E0"].expr.xreplace({found.shift: sp.Integer(0)})
        program = _with(s, {"E0": own, top.name: keys[0]})
        after = in_empty_rows(lambda at: at.fields["sinks"].astype(np.float64)[:, None])
        yield Alternative("the maximum is that of the keys alone", program=program, after=after)


def _sinks_of(s: Situation) -> Iterator[Alternative]:
    """The sinks of other heads."""
    if s.definition.sink:
        yield from (Alternative(label, reads={"sinks": at}) for label, at in other_heads(s))


def _zero_sinks(s: Situation) -> Iterator[Alternative]:
    if s.definition.sink:
        yield Alternative(fields={"sinks": np.zeros_like(s.fields["sinks"])}, after=_without_sinks(s))


def _sink_times(f: sp.Expr) -> Rewrite:
    """The sink multiplied where it is read."""
    return _sink(lambda e, _: e.xreplace({r: r * f for r in e.atoms(sp.Indexed) if name_of(r) == "sink"}))


def _scaled_sink(s: Situation) -> Iterator[Alternative]:
    if s.definition.sink and "scale" in s.program:
        yield from _sink_times(tensor("scale"))(s)


def _sink_of_other_base(s: Situation) -> Iterator[Alternative]:
    """Exponentials to base 2 of scores that were multiplied by log2(e), and of a sink that was not; and the other way round."""
    for label, f in (("ln 2", sp.log(2)), ("log2(e)", 1 / sp.log(2))):
        yield from (replace(a, label=f"times {label}") for a in _sink_times(f)(s))


def _dropout(change: Callable[[sp.Expr], sp.Expr]) -> Rewrite:
    """Another factor of the weights that dropout keeps: a function of p."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not s.definition.dropout or "Pd" not in s.program:
            return
        kept = s.program["Pd"]
        weight = next(x for x in kept.expr.atoms(sp.Indexed) if J in x.indices)
        rate = 1 - weight / kept.expr
        yield Alternative(program=_with(s, {"Pd": weight * change(sp.simplify(rate))}))

    return rewrite


def _no_dropout(s: Situation) -> Iterator[Alternative]:
    if s.definition.dropout:
        yield from s.changed("", after=_without("grad_dropout_p"), dropout=False, dropout_p=None)


def _without(name: str) -> Callable[[Situation, Predictions], Predictions]:
    return lambda _, p: {n: x for n, x in p.items() if n != name}


def _inverted_dropout(s: Situation) -> Iterator[Alternative]:
    if s.definition.dropout:
        yield Alternative(fields={"dropout_mask": ~s.fields["dropout_mask"].astype(bool)})


def _dropout_of_scores(s: Situation) -> Iterator[Alternative]:
    """Dropped keys leave the softmax: the others are normalised again."""
    found = softmax_of(s.program)
    if found is None or not s.definition.dropout or "Pd" not in s.program:
        return
    where = s.program["Pd"].where
    total = found.normalisation.total
    changed = [replace(x, where=where) if x.name == total.name else x for x in s.program]
    yield Alternative("and scaled", program=s.program.with_statements(changed))
    weight = tensor(found.weight.name, *found.weight.indices)
    changed = [replace(x, expr=weight) if x.name == "Pd" else x for x in changed]
    yield Alternative("and not scaled", program=s.program.with_statements(changed).live())


_LSE = "what is stored beside the output, and who reads it: a merge, a backward"
ROWS = (
    Fault(
        "F38", "softmax over the queries", "mathematics", "sum over i of P = 1", "sum over j of P = 1", _over_queries,
        threads=("PyTorch-NLP#2", "llms-from-scratch-rs#30"), look="the axis of the softmax", shows="n > 1",
        blind="all scores equal and n = m",
    ),
    Fault(
        "F106", "the output is not normalised", "mathematics", "sum_j exp(s - m) v", "sum_j exp(s - m) v / l", _unnormalised,
        look="the last division",
    ),
    Fault(
        "F107", "the output is normalised twice", "mathematics", "sum_j exp(s - m) v / l**2", "sum_j exp(s - m) v / l",
        _squared,
        look="the division of weights and of the output",
    ),
    Fault(
        "F40", "LSE in base 2, the definition says natural (or the other way round)", "convention", "L/ln 2", "L",
        _other_base,
        threads=("flashinfer#2113", "sglang#40903"), look=_LSE, shows="the LSE; the output is right", blind="L = 0",
        convention="lse",
    ),
    Fault(
        "F41", "LSE without the row maximum", "mathematics", "ln(sum exp(s - m))", "m + ln(sum exp(s - m))",
        _lse(lambda f, s: f.lse.expr.xreplace({f.shift: sp.Integer(0)}) if f.lse is not None and isinstance(f.shift,
        sp.Indexed) else None),
        look=_LSE, shows="the LSE; the output is right", blind="m = 0",
    ),
    Fault(
        "F108", "the row maximum in place of the LSE", "convention", "m", "m + ln(l)", _lse(lambda f, s: f.shift), look=_LSE,
        shows="the LSE; the output is right", blind="one key", convention="lse",
    ),
    Fault(
        "F109", "the sum of exponentials in place of its logarithm", "convention", "l", "m + ln(l)",
        _lse(lambda f, s: f.normalisation.divisor), look=_LSE, shows="the LSE; the output is right", convention="lse",
    ),
    Fault(
        "F110", "the LSE leaves out the sink", "convention", "ln(sum over keys)", "ln(sum over keys + exp(sink))",
        _lse(_keys_alone),
        threads=("flash-attention#2706",), look=_LSE, shows="a sink; the output is right", blind="no sink", convention="sink",
    ),
    Fault(
        "F111", "the LSE is multiplied by a constant", "mathematics", "f*L", "L", _lse_factors, look=_LSE,
        shows="the LSE; the output is right", convention="lse",
    ),
    Fault(
        "F112", "the LSE of a row without keys is not -infinity", "convention", "+inf, 0 or NaN", "-inf", _infinite,
        threads=("flash-attention#978",), look=_LSE, shows="rows without keys", blind="no empty row", convention="empty_row",
    ),
    Fault(
        "F23", "the sink is dropped", "mathematics", "sum exp(s)", "sum exp(s) + exp(sink)", _no_sink,
        threads=("vllm-metal#212", "TransformerEngine#2541"), look="whether sinks reach the kernel",
        shows="sinks comparable with the LSE", blind="a sink far below the LSE", convention="sink",
    ),
    Fault(
        "F24", "the sink is counted twice", "mathematics", "sum exp(s) + 2*exp(sink)", "sum exp(s) + exp(sink)",
        _sink(lambda e, f: 2 * e), threads=("rocm-libraries#12229",), look="the sink of each split of the keys",
        shows="sinks comparable with the LSE", convention="sink",
    ),
    Fault(
        "F113", "the sink is not measured from the row maximum", "mathematics", "sum exp(s - m) + exp(sink)",
        "sum exp(s - m) + exp(sink - m)", _sink_unmeasured,
        look="the exponent of the sink, and what enters the maximum",
        blind="m = 0", convention="sink",
    ),
    Fault(
        "F114", "the sink is multiplied by the scale", "mathematics", "exp(scale*sink)", "exp(sink)", _scaled_sink,
        look="whether the sink joins before or after the scale", blind="scale = 1", convention="sink",
    ),
    Fault(
        "F172", "the sink is not brought to the base of the exponentials", "mathematics", "2**(sink - m*log2(e))",
        "exp(sink - m)", _sink_of_other_base, look="whether log2(e) multiplies the sink too", blind="sink = 0", convention="sink",
    ),
    Fault(
        "F115", "sinks of the wrong heads", "mathematics", "sink[h']", "sink[h]", _sinks_of,
        look="the index of the sink", shows="sinks that differ from head to head", convention="sink",
    ),
    Fault(
        "F116", "all sinks are 0", "mathematics", "exp(0)", "exp(sink)", _zero_sinks, threads=("TransformerEngine#3551",),
        look="whether the learned sinks are loaded", shows="sinks other than 0", blind="sinks of 0", convention="sink",
    ),
    Fault(
        "F117", "dropout without 1/(1 - p)", "mathematics", "P Z", "P Z/(1 - p)", _dropout(lambda p: sp.Integer(1)),
        look="the scale of what dropout keeps", shows="dropout", blind="p = 0", convention="dropout",
    ),
    Fault(
        "F118", "dropout with the rate and the share that is kept exchanged", "mathematics", "P Z/p", "P Z/(1 - p)",
        _dropout(lambda p: 1 / p), look="whether p is dropped or kept", shows="dropout", blind="p = 1/2",
        convention="dropout",
    ),
    Fault(
        "F119", "dropout is not applied", "mathematics", "P", "P Z/(1 - p)", _no_dropout,
        look="whether the mask reaches the kernel",
        shows="dropout", convention="dropout",
    ),
    Fault(
        "F120", "the dropout mask is inverted", "convention", "True drops", "True keeps", _inverted_dropout,
        look="what True means in the dropout mask", shows="dropout", convention="dropout",
    ),
    Fault(
        "F121", "dropout before the normaliser: what is kept is normalised again", "mathematics", "softmax over what is kept",
        "softmax, then dropout", _dropout_of_scores, look="the order of softmax and dropout", shows="dropout",
        convention="dropout",
    ),
)  # fmt: skip
