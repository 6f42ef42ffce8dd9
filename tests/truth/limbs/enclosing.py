"""What the tests of the limb engine share: inputs of a program, and a comparison with balls at 200 more bits."""

from fractions import Fraction

import numpy as np

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present
from symattn.readings import balls
from symattn.truth.derived import with_gradient
from symattn.truth.limbs import evaluate

SIZES = {"n": 5, "m": 6, "d": 4, "dv": 3, "H": 2, "Hkv": 2, "G": 2, "B": 1}


def programs(definition):
    """The forward program, its gradient by the rule, and the one that people know."""
    program = definition.program()
    return program, with_gradient(program), present(program, adjoint(program)).program


def draw(program, seed=0, dtype=np.float32, sizes=SIZES, spread=0, **given):
    """Normal numbers for every input that is not given, ``spread`` binary exponents apart."""
    rng = np.random.default_rng(seed)
    out = {}
    for name in program.inputs:
        shape = tuple(sizes.get(str(a), 3) if a.is_Symbol else int(a) for a in program.shapes[name])
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
        out[name] = given[name](shape, rng) if callable(given.get(name)) else given.get(name, x.astype(dtype))
    return out


def check(program, inputs, bits=160, outputs=None, further=200, sizes=None):
    """Evaluate, and see that every value is within the radius, and the radius within what was asked for; give the worst ratio."""
    found = evaluate(program, inputs, bits=bits, outputs=outputs, sizes=sizes)
    exact = balls.evaluate(program, inputs, bits=bits + further, sizes=sizes)
    worst = 0.0
    for name, fixed in found.items():
        assert fixed.shape == exact[name].shape
        for at, mid in np.ndenumerate(fixed.midpoints()):
            value, rad = balls.parts(exact[name][at])
            if isinstance(value, float) or isinstance(mid, float):
                assert mid == value or (mid != mid and value != value), (name, at, mid, value)
                continue
            assert abs(mid - value) + rad <= fixed.radius, (name, at, float(abs(mid - value)), float(fixed.radius))
            worst = max(worst, float(abs(mid - value) / fixed.radius) if fixed.radius else 0.0)
        nothing = fixed.scale < Fraction(1, 2 ** (bits + 40))
        assert nothing or fixed.radius <= fixed.scale / 2**bits, (name, float(fixed.radius), float(fixed.scale))
        largest = max((abs(v) for v in fixed.midpoints().ravel() if isinstance(v, Fraction)), default=Fraction(0))
        assert nothing or largest <= fixed.scale * 8 * max(fixed.shape, default=1), name
    return worst


def booleans(shape, rng):
    """A mask with a row that keeps nothing."""
    keep = rng.random(shape) < 0.6
    keep[..., 0, :] = False
    return keep


def additive(shape, rng):
    """An additive mask with -inf at some places, and a row of nothing else."""
    return np.where(booleans(shape, rng), rng.standard_normal(shape).astype(np.float32), -np.inf).astype(np.float32)


DEFINITIONS = {
    "plain": Definition(),
    "grouped heads, causal": Definition(heads=4, kv_heads=2, causal="bottom-right"),
    "alibi": Definition(heads=4, kv_heads=2, alibi=True, causal="bottom-right"),
    "alibi, published slopes": Definition(heads=3, alibi=True, alibi_slopes="power", causal="top-left"),
    "absolute alibi": Definition(heads=2, alibi=True, alibi_distance="absolute"),
    "bias": Definition(heads=2, bias=True),
    "sink": Definition(heads=2, sink=True, causal="top-left"),
    "boolean mask": Definition(heads=2, attn_mask="boolean"),
    "additive mask": Definition(heads=2, attn_mask="additive"),
    "dropout": Definition(dropout=True, dropout_p="1/4", causal="top-left"),
    "base 2": Definition(lse_base="2", window=(2, 1)),
    "off by one": Definition(normalizer="off-by-one", causal="top-left"),
    "no lse": Definition(lse=False, scale="1/3"),
    "negative scale": Definition(scale="-2"),
    "prefix": Definition(prefix=2, causal="top-left"),
    "documents": Definition(document=True),
    "lengths": Definition(key_lengths=True, heads=2),
    "own score": Definition(score="s - (i - j)**2/8", mask="j <= i"),
}


def as_floats(x, discrete):
    """Numbers as float32, tokens and positions as integers."""
    floats = np.vectorize(float, otypes=[np.float64])(np.asarray(x))
    return floats.astype(np.int64) if discrete else floats.astype(np.float32)
