"""Gradients of the linear family against torch's autograd through the loop over the recurrence, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn.adjoint import adjoint
from symattn.binding import bind, unbind
from symattn.definition import Definition
from symattn.readings import numpy as reading
from tests.support import require
from tests.test_linear import FIELDS, given

NAMES = ["normalised", "retention", "head", "step", "channel-log", "delta", "gated-delta", "channel-delta"]


def looped(torch: Any, fields: dict[str, Any], x: dict[str, Any]) -> Any:
    """The recurrence over all heads at once, as a user of torch writes it."""
    q, k, v = x["query"], x["key"], x["value"]
    if fields.get("feature") == "elu":
        q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
    group = q.shape[1] // k.shape[1]
    b, kv, n, d = k.shape
    decay = x.get("decay", torch.ones(kv, dtype=q.dtype))
    if fields.get("decay") == "retention":
        decay = 1 - 2.0 ** (-5 - torch.arange(kv, dtype=q.dtype))
    decay = decay.exp() if fields.get("decay_space") == "log" else decay
    decay = {1: lambda a: a[None, :, None, None], 3: lambda a: a[..., None], 4: lambda a: a}[decay.ndim](decay).expand(
        b, kv, n, d
    )
    state = x.get("initial_state", torch.zeros(b, kv, d, v.shape[-1], dtype=q.dtype))
    total = torch.zeros(b, kv, d, dtype=q.dtype)
    out = []
    for t in range(n):
        state, total = decay[:, :, t, :, None] * state, decay[:, :, t] * total
        new = v[:, :, t]
        if "beta" in x:
            new = x["beta"][:, :, t, None] * (new - torch.einsum("bhd,bhde->bhe", k[:, :, t], state))
        state, total = state + k[:, :, t, :, None] * new[:, :, None, :], total + k[:, :, t]
        read = torch.einsum("bhd,bhde->bhe", q[:, :, t], state.repeat_interleave(group, 1))
        if fields.get("normalized"):
            out.append(read / torch.einsum("bhd,bhd->bh", q[:, :, t], total.repeat_interleave(group, 1))[..., None])
        else:
            out.append(read * d**-0.5)
    return torch.stack(out, 2)


@pytest.mark.parametrize("evaluation", ["parallel", "recurrent", "chunked"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_autograd(name, evaluation):
    torch = require("torch")
    fields, arrays = FIELDS[name], given(FIELDS[name], n=5)
    grad_out = np.random.default_rng(3).normal(size=(2, 4, 5, 2))
    leaves = {n: torch.tensor(x, requires_grad=True) for n, x in arrays.items()}
    out = looped(torch, fields, leaves)
    out.backward(torch.tensor(grad_out))
    d = Definition(form="linear", causal=True, evaluation=evaluation, block=2 if evaluation == "chunked" else None, **fields)
    bound = bind(d, {**arrays, "grad_out": grad_out})
    program = adjoint(bound.program)
    found = reading.evaluate(program, bound.inputs, sizes=dict(bound.sizes))
    got = dict(unbind(bound, n, found[n]) for n in ("O", *program.outputs))
    assert np.allclose(got["out"], out.detach().numpy(), rtol=1e-12, atol=1e-13)
    for n, leaf in leaves.items():
        assert np.allclose(got["grad_" + n], leaf.grad.numpy(), rtol=1e-9, atol=1e-11), n


def test_a_gradient_of_another_rule_is_seen():
    torch = require("torch")
    arrays = given(FIELDS["gated-delta"], n=5)
    leaves = {n: torch.tensor(x, requires_grad=True) for n, x in arrays.items()}
    looped(torch, FIELDS["gated-delta"], leaves).sum().backward()
    undecayed = {n: torch.tensor(x, requires_grad=True) for n, x in arrays.items() if n != "decay"}
    looped(torch, FIELDS["delta"], undecayed).sum().backward()
    assert not np.allclose(leaves["beta"].grad.numpy(), undecayed["beta"].grad.numpy())
