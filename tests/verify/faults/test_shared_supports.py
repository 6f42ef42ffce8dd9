"""A sparsemax kernel that takes the size of one support for several rows is named, in its threshold and in its backward."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verify.faults.running import diagnosis

SPARSEMAX = {"normalizer": "sparsemax", "lse": False}
SHARED = {
    "the greatest over everything": lambda k: k.max(),
    "the mean over everything": lambda k: k.mean(),
    "summed over the batch": lambda k: k.sum(0, keepdims=True),
    "the least over the rows": lambda k: k.min(2, keepdims=True),
    "the first over the batch": lambda k: k[:1],
}


class Sparsemax:
    """A kernel in float32; ``threshold`` and ``backward_size`` say which sizes of supports it takes; right where None."""

    arrays = "numpy"

    def __init__(self, threshold=None, backward_size=None):
        self.threshold, self.size = threshold or (lambda k: k), backward_size or (lambda k: k)

    def weights(self, query, key, value):
        group = query.shape[1] // key.shape[1]
        q, k, v = (x.astype(np.float32) for x in (query, key.repeat(group, 1), value.repeat(group, 1)))
        z = q @ k.swapaxes(2, 3) / np.float32(np.sqrt(q.shape[3]))
        ordered = -np.sort(-z, axis=-1)
        sums = ordered.cumsum(-1)
        size = (1 + np.arange(1, z.shape[-1] + 1) * ordered > sums).sum(-1)
        total = np.take_along_axis(sums, size[..., None] - 1, -1)[..., 0] - 1
        tau = (total / np.broadcast_to(self.threshold(size), size.shape)).astype(np.float32)
        return q, k, v, np.maximum(z - tau[..., None], 0), group

    def __call__(self, query, key, value, **options):
        _, _, v, p, _ = self.weights(query, key, value)
        return (p @ v).astype(query.dtype)

    def backward(self, query, key, value, grad_out, **options):
        q, k, v, p, group = self.weights(query, key, value)
        do, seen = grad_out.astype(np.float32), p > 0
        dp = do @ v.swapaxes(2, 3)
        size = seen.sum(-1)
        mean = (dp * seen).sum(-1) / np.broadcast_to(self.size(size), size.shape).astype(np.float32)
        dz = np.where(seen, dp - mean[..., None], 0) / np.float32(np.sqrt(q.shape[3]))
        summed = lambda x: x.reshape(x.shape[0], -1, group, *x.shape[2:]).sum(2).astype(query.dtype)
        return (dz @ k).astype(query.dtype), summed(dz.swapaxes(2, 3) @ q), summed(p.swapaxes(2, 3) @ do)


@pytest.mark.parametrize("way", SHARED)
def test_it_is_named_in_the_backward(way):
    found = diagnosis(Sparsemax(backward_size=SHARED[way]), SPARSEMAX, ("normal",), backward=True)
    assert found[0].fault == ("B27",) and way in found[0].title


def test_it_is_named_in_the_threshold():
    found = diagnosis(Sparsemax(threshold=SHARED["the greatest over everything"]), SPARSEMAX, ("normal",), "bfloat16")
    assert found[0].fault == ("F173",) and "the greatest over everything" in found[0].title


def test_a_size_per_row_is_right():
    assert diagnosis(Sparsemax(), SPARSEMAX, ("normal",), backward=True) == ()
