"""Wrong intermediate results: of the backward, and of the log-sum-exp; planted in plain kernels, each named by its row."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis.search import Search
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.inputs import KINDS, Shape, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference

F = np.float32
KIND = {k.name: k for k in KINDS}


def scores(query, key, o):
    """Scores, before and after a cap."""
    z = query @ key.repeat(query.shape[1] // key.shape[1], 1).swapaxes(2, 3) * F(query.shape[3] ** -0.5)
    cap = F(o.get("softcap", 1))
    return z, cap * np.tanh(z / cap) if "softcap" in o else z


def kept(o):
    """The factor of each weight that dropout leaves."""
    return o["dropout_mask"] / F(1 - o["dropout_p"]) if "dropout_mask" in o else F(1)


def merged(z, fault):
    """The log-sum-exp that a kernel with a fault stores beside the right output."""
    top = z.max(3)
    lse = top + np.log(np.exp(z - top[..., None]).sum(3))
    word, _, number = fault.partition(" of ")
    if word in ("greatest", "last"):
        size = int(number.removeprefix("tiles ")) if "tiles" in number else -(-z.shape[3] // int(number))
        each = [merged(z[..., t : t + size], "") for t in range(0, z.shape[3], size)]
        return np.max(each, 0) if word == "greatest" else each[-1]
    return lse + top * F({"unscaled": 6**0.5 - 1, "scaled": 6**-0.5 - 1, "base 2": 1 / np.log(2) - 1}.get(fault, 0))


def plain(fault=""):
    """Attention with its gradients; ``fault`` is one of the backward or of the log-sum-exp."""

    def run(query, key, value, enable_gqa=False, **o):
        g = query.shape[1] // key.shape[1]
        z = scores(query, key, o)[1]
        p = np.exp(z - merged(z, "")[..., None])
        return p * kept(o) @ value.repeat(g, 1), merged(z, fault)

    def backward(query, key, value, grad_out, *, out, lse, enable_gqa=False, grad_lse=None, **o):
        heads, kv, d = query.shape[1], key.shape[1], query.shape[3]
        k, v, c, r = key.repeat(heads // kv, 1), value.repeat(heads // kv, 1), F(d**-0.5), kept(o)
        raw, z = scores(query, key, o)
        p = np.exp(z - lse[..., None])
        width = {"first d": d, "whole tiles": v.shape[3] // 16 * 16}.get(fault, v.shape[3])
        all_of_it = grad_out[..., :width] @ v[..., :width].swapaxes(2, 3)
        row = (p * all_of_it).sum(3) if fault == "row of all" else (grad_out * out).sum(3)
        row = row if grad_lse is None else row - grad_lse
        ds = p * (r if fault == "dropped" else F(1)) * (all_of_it * r - row[..., None])
        if "softcap" in o:
            cap = F(o["softcap"])
            t = {"raw": raw / cap, "clipped": raw / cap, "tanh twice": np.tanh(z / cap), "undivided": z}.get(fault, z / cap)
            ds = ds * (np.maximum(1 - t * t, F(0)) if fault == "clipped" else 1 - t * t)

        def summed(x):
            return x.reshape(x.shape[0], kv, heads // kv, *x.shape[2:]).sum(2)

        dk, dv = ds.swapaxes(2, 3) @ query * c, (p * r).swapaxes(2, 3) @ grad_out
        return ds @ k * c, summed(dk), summed(dv)

    run.backward = backward
    run.arrays = "numpy"
    return run


def looked_at(kernel, fields, shapes, kind="normal", *, backward):
    d, found = Definition(**fields), []
    for text in shapes:
        ref = Reference(d, fields_for(d, Shape.parse(text), "float32", 0, KIND[kind]))
        run_case(resolve(kernel), ref, "shape", backward=backward, seen=found)
    return found


SMALL, WIDE = ("2,4,2,3,5,6", "1,2,1,4,3,6"), ("2,4,2,3,5,6,9", "1,2,1,4,3,6,20")
DROPOUT, CAP = {"dropout": True}, {"softcap": 2}
GRADIENTS = [
    ("dropped", DROPOUT, SMALL, "B58", ""),
    ("row of all", DROPOUT, SMALL, "B59", ""),
    ("first d", {}, WIDE, "B60", "as many as the queries have"),
    ("whole tiles", {}, ("1,2,1,4,3,6,20",), "B60", "beyond tiles of 16"),
    ("raw", CAP, SMALL, "B61", "of the score before the cap"),
    ("clipped", CAP, SMALL, "B61", "of the score before the cap, at least 0"),
    ("tanh twice", CAP, SMALL, "B61", "tanh of what is capped already"),
    ("undivided", CAP, SMALL, "B61", "without the division by the cap"),
]
LONG = ("1,2,1,3,37,6", "1,2,1,3,50,6")
STORED = [
    ("unscaled", {}, SMALL, "F178", "the maximum times 1/scale"),
    ("scaled", {}, SMALL, "F178", "the maximum times the scale"),
    ("base 2", CAP, SMALL, "F178", "the maximum times log2(e)"),
    ("greatest of 3", {}, LONG, "F179", "the greatest of 3 splits"),
    ("greatest of 5", DROPOUT, LONG, "F179", "the greatest of 5 splits"),
    ("greatest of tiles 16", {}, LONG, "F179", "the greatest of splits of 16 keys"),
    ("last of 4", CAP, LONG, "F179", "the last of 4 splits"),
]


@pytest.mark.parametrize(("fault", "fields", "shapes", "id", "label"), GRADIENTS)
def test_a_fault_of_the_backward_is_explained_by_its_row(fault, fields, shapes, id, label):
    cases = looked_at(plain(fault), fields, shapes, "large" if "softcap" in fields else "normal", backward=True)
    assert any(n.startswith("grad_") for o in cases for n in o.failing)
    rows = [CATALOGUE[x] for x in (id, "B07", "B12", "B19", "B20", "B46", "F117", "F119")]
    found = Search(cases, rows, budget=0).run()
    assert {f.id for e in found for f in e.faults} == {id}
    assert label in {h.label for e in found for h in e.backward}


@pytest.mark.parametrize(("fault", "fields", "shapes", "id", "label"), STORED)
def test_a_fault_of_the_stored_lse_is_explained_by_its_row(fault, fields, shapes, id, label):
    cases = looked_at(plain(fault), fields, shapes, backward=False)
    assert {n for o in cases for n in o.failing} == {"lse"}
    rows = [CATALOGUE[x] for x in (id, "F40", "F41", "F108", "F109", "F111")]
    found = [h for e in Search(cases, rows, budget=0).run() for h in e.forward]
    assert {h.fault.id for h in found} == {id} and label in {h.label for h in found}


@pytest.mark.parametrize(("fields", "shapes"), [({}, (*WIDE, *LONG)), (DROPOUT, SMALL), (CAP, SMALL)])
def test_the_right_kernel_fails_nowhere(fields, shapes):
    assert not any(o.failing for o in looked_at(plain(), fields, shapes, backward=True))
