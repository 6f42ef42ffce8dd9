"""The rounding bound through a recurrence: kernels in low precision stay below it, and a narrower one leaves it."""

import mpmath
import numpy as np
import pytest

from symattn import arithmetic
from symattn.derivative import backward
from symattn.readings import floats as formats
from symattn.readings import mpmath as many
from symattn.readings import numpy as floats
from symattn.readings import rounding
from tests.scans import EXAMPLES, N

CTX = mpmath.MPContext()
CTX.dps = 60
FORMATS = {"fp32": np.float32, "bf16": formats.dtype_of("bfloat16")}
SMOOTH = ["delta rule", "gated delta rule", "tanh RNN", "two in a row", "initial state", "product", "resets", "online softmax"]


def scaled(example, seed):
    """Inputs of size below 1, on which no recurrence grows much."""
    rng = np.random.default_rng(seed)
    given = {n: rng.uniform(-0.9, 0.9, shape) for n, shape in example.shapes.items()}
    return {n: (v > 0).astype(np.int64) if n in example.program.discrete else v for n, v in given.items()}


def inside(program, given, dtype, how, computed):
    """Whether computed tensors are within their bounds, and the greatest share of a bound that one uses."""
    exact = {n: v if n in program.discrete else v.astype(float).astype(dtype) for n, v in given.items()}
    shown = {n: v if n in program.discrete else v.astype(float) for n, v in exact.items()}
    true = many.evaluate(program, shown, digits=40)
    boxes = rounding.evaluate(program, exact, how)
    shares = [0.0]
    for n, got in computed(exact).items():
        for t, k, b, v, own in zip(
            *(np.ravel(a) for a in (true[n], got, boxes[n].bound, boxes[n].value, boxes[n].own)), strict=True
        ):
            error = abs(CTX.mpf(float(k)) - t)
            assert error <= b, (n, float(error), b)
            assert abs(CTX.mpf(float(v)) - t) <= own
            shares.append(float(error / b) if b else 0.0)
    return max(shares)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", SMOOTH)
def test_float_arrays_stay_within_the_bound_of_their_arithmetic(name, format):
    example = EXAMPLES[name]
    how = arithmetic.get(f"numpy-{format}")
    back = backward(example.program)
    rng = np.random.default_rng(1)
    for program, seeds in ((example.program, {}), (back.program, back.seeds)):
        given = scaled(example, 3)
        given |= {n: rng.integers(-8, 9, np.shape(many.evaluate(example.program, given)[o])) / 16 for o, n in seeds.items()}
        given = {n: v for n, v in given.items() if n in program.inputs}

        def computed(x, program=program):
            found = floats.evaluate(program, x, dtype=FORMATS[format])
            return {n: found[n] for n in program.outputs}

        assert inside(program, given, FORMATS[format], how, computed) > 0.001


@pytest.mark.parametrize("name", ["linear attention", "delta rule", "two steps back"])
def test_a_plain_loop_in_half_precision_stays_within_the_bound(name):
    example = EXAMPLES[name]
    how = arithmetic.uniform("half", "float16")
    outputs = [o for o in example.program.outputs if o != "W"]

    def computed(x):
        found = example.loop({n: _objects(v) for n, v in x.items()}, None)
        return {o: found[o] for o in outputs}

    assert inside(example.program, scaled(example, 5), np.float16, how, computed) > 0.01


def _objects(v):
    out = np.empty(v.shape, dtype=object)
    out.ravel()[:] = [np.float16(k) for k in v.ravel()]
    return out


def test_a_kernel_that_keeps_its_state_in_a_narrow_format_leaves_the_bound():
    """The state rounded to bfloat16 at each step, against a declaration in float32."""
    example = EXAMPLES["gated linear attention"]
    x = {n: v.astype(float).astype(np.float32) for n, v in scaled(example, 2).items()}
    boxes = rounding.evaluate(example.program, x, arithmetic.get("numpy-fp32"))
    narrow = formats.dtype_of("bfloat16")
    state, worst = np.zeros((2, 3), np.float32), 0.0
    for k in range(N):
        state = (x["alpha"][k] * state + np.multiply.outer(x["k"][k], x["v"][k])).astype(narrow).astype(np.float32)
        box = boxes["W"].value[k], boxes["W"].bound[k]
        worst = max(worst, float(np.max(np.abs(state - box[0]) / box[1])))
    assert worst > 100


def test_the_marks_of_a_box_hold_for_all_steps():
    """A state that turns negative late is not said to be non-negative, which would give it a lower bound that is too high."""
    example = EXAMPLES["two steps back"]
    x = {"x": np.array([1.0, 0.0, -3.0, 1.0, 0.0]), "g": np.full(5, 0.5)}
    box = rounding.evaluate(example.program, x, arithmetic.get("numpy-fp32"))["h"]
    assert (box.value < 0).any()
    assert not box.nonneg
    assert box.held == "float32"
