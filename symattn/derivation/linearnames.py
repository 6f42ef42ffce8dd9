"""The names of the steps of the linear family: rows for the tables of :mod:`symattn.derivation.naming`."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, tuple[str, str, str]] = {
    "Qf": (
        "Features of the query",
        "Features of the queries",
        "The feature map, entry by entry: products of features are the weights.",
    ),
    "Kf": ("Features of the key", "Features of the keys", "The same feature map as for the queries."),
    "Qfp": ("Features of the query above 0", "Features of the queries above 0", "The feature map where an entry is positive."),
    "Qfn": (
        "Features of the query below 0",
        "Features of the queries below 0",
        "The feature map where an entry is not positive.",
    ),
    "Kfp": ("Features of the key above 0", "Features of the keys above 0", "The feature map where an entry is positive."),
    "Kfn": ("Features of the key below 0", "Features of the keys below 0", "The feature map where an entry is not positive."),
    "gam": ("Decay", "Decays", "The factor by which the state of a head fades at every step."),
    "Gamma": (
        "Decay between two steps",
        "Decays between two steps",
        "What step j wrote has faded by every factor since, up to step i.",
    ),
    "Lambda": (
        "Decay from the start",
        "Decays from the start",
        "What was there at the start (of the chunk) has faded by every factor so far.",
    ),
    "Omega": (
        "Decay to the end of the chunk",
        "Decays to the end of the chunk",
        "What a step wrote still fades by the factors of the later steps.",
    ),
    "Delta": ("Decay of a chunk", "Decays of the chunks", "What enters a chunk has faded by all its factors when it leaves."),
    "Lsum": (
        "Sum of the log decays",
        "Sums of the log decays",
        "Logarithms of factors are added, so that nothing under- or overflows.",
    ),
    "Lall": ("Log decay of a chunk", "Log decays of the chunks", "The logarithms of all factors of a chunk, added up."),
    "Rg": ("Decayed score", "Decayed scores", "The older a key is, the more its score has faded."),
    "lr": ("Row sum", "Row sums of the weights", "The sum by which a row is divided, so that its weights sum to 1."),
    "lrk": ("Row sum inside the chunk", "Row sums inside the chunks", "The share of the keys of the query's own chunk."),
    "lr0": (
        "Row sum of earlier chunks",
        "Row sums of earlier chunks",
        "The share of all earlier keys, read from their running sum.",
    ),
    "St": ("State", "States", "A step lets the state fade, then writes its key and value to it: key channels by value channels."),
    "Sb": (
        "State before the step",
        "States before the steps",
        "The state that the step before has left; the given one before the first.",
    ),
    "Si": ("Initial state", "Initial states", "What is there before the first step."),
    "Sa": ("Writing of a chunk", "Writings of the chunks", "All keys and values of a chunk, faded up to its end."),
    "Sk": ("Corrections of a chunk", "Corrections of the chunks", "How what a chunk writes depends on the state that enters it."),
    "Sp": ("Correction of the state", "Corrections of the states", "What the entering state already said is not written again."),
    "z": (
        "Running sum of the keys",
        "Running sums of the keys",
        "The state of the normaliser: it fades and grows as the state does.",
    ),
    "za": ("Keys of a chunk", "Keys of the chunks", "All keys of a chunk, faded up to its end."),
    "Rk": ("Key products", "Key products", "How much an earlier key has in common with this one."),
    "Tk": ("Decayed key products", "Decayed key products", "The older a key is, the less it still says."),
    "V0": ("What the initial state says", "What the initial state says", "The given state, faded, read by the keys."),
    "Vp": (
        "What the state says",
        "What the state says",
        "The faded state read by the step's key: what it already holds in place of the value.",
    ),
    "Vn": ("Written value", "Written values", "The delta rule writes only what the state does not yet say, beta times."),
    "Vnp": ("What earlier steps say", "What earlier steps say", "What the values written so far give when this key reads them."),
    "Vw": (
        "Written value of a chunk by itself",
        "Written values of a chunk by itself",
        "What would be written if the entering state were 0.",
    ),
    "Vwp": (
        "What earlier steps of the chunk say",
        "What earlier steps of the chunk say",
        "What this key reads of the chunk's own values.",
    ),
    "Kd": ("Decayed key", "Decayed keys", "A key reads the state that entered the chunk, faded since."),
    "Kw": (
        "Answer to the entering state",
        "Answers to the entering state",
        "How much of the entering state each step takes off its value.",
    ),
    "Kwp": ("Answers of earlier steps", "Answers of earlier steps", "What earlier steps of the chunk have already taken off."),
    "Or": ("Read-out", "Read-outs", "The query reads the state after the step has been written."),
    "Oin": ("Output from the chunk", "Outputs from the chunk", "The keys of the query's own chunk, pair by pair."),
    "Oout": ("Output from the state", "Outputs from the state", "All that came before, read from the state."),
    "Ooutr": (
        "Read-out of the state",
        "Read-outs of the state",
        "The query reads the state that was there at the start, faded since.",
    ),
}
INPUTS: Mapping[str, str] = {
    **dict.fromkeys(("gam", "Al", "Ac"), "decays"),
    **dict.fromkeys(("lgam", "Lal", "Lac"), "log decays"),
    "Bt": "rates of writing",
    "St0": "initial state",
}
LEGEND: Mapping[str, str] = {
    "gam": "the factor by which the state fades at every step",
    "lgam": "the logarithm of the factor by which the state fades at every step",
    "Al": "the factor by which the state fades at each step",
    "Lal": "the logarithm of the factor by which the state fades at each step",
    "Ac": "the factor by which each key channel of the state fades at each step",
    "Lac": "the logarithm of the factor by which each key channel of the state fades at each step",
    "Bt": "how much of what the state does not yet say each step writes",
    "St0": "the state before the first step",
}
