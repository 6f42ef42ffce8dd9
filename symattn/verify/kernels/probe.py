"""What a kernel's arithmetic can be told from outside: ``python -m symattn.verify.kernels.probe KERNEL --dtype FORMAT``.

Each probe is an input on which the exact result is known on paper and one property of the arithmetic decides what comes out. What
is printed is a table that ``--arithmetic FILE`` takes; each line says whether it was measured or is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from symattn import formats
from symattn.arithmetic import SHORT
from symattn.errors import DefinitionError
from symattn.verify.kernels.base import Kernel
from symattn.verify.kernels.probed import WIDTH, Line, Probe, filled, first_channel

LONGEST = 2048
"""Keys that are tried in search of a tile."""


def exp_error(p: Probe) -> Line:
    """The relative error of the exponential, by the LSE of two values.

    A key with score 0 and 255 with -x: the LSE is log(e0 + 255 e), its error the weighted mean of theirs.
    Without an LSE the two weights themselves are read off the output with V = I, as finely as the dtype allows.
    """
    scores = np.unique(p.rounded(np.linspace(2**-6, 6, 3000 if p.dtype in ("float64", "float32") else 500)))
    query, key = filled(-4 * scores, np.concatenate([np.zeros((1, WIDTH)), np.tile(first_channel(np.ones(1)), (255, 1))]))
    out, lse = p(query, key, np.eye(len(key), WIDTH))
    if lse is None:
        smallest = float(formats.get(p.dtype).eta)
        error = out[:, 1] / out[:, 0] * np.exp(scores) - 1
        reading = 4 * p.unit + smallest * 256 * np.exp(scores)
    else:
        unit = float(formats.get("float64" if p.dtype == "float64" else "float32").unit_roundoff)
        error = np.expm1(lse - np.log1p(255 * np.exp(-scores)))
        reading = np.full(scores.shape, 8 * unit * (1 + np.max(lse)))
    clear = np.abs(error) > 2 * reading
    if not clear.any():
        return Line("exp_error", None, f"assumed 4 ulp: errors above {2 * np.min(reading):.1e} would be seen, and none is")
    top = float(f"{1.1 * float(np.max(np.abs(error[clear]))):.2g}")
    return Line("exp_error", top, "measured by the LSE of two values, 10 % added")


def width_of(survives: Callable[[int, tuple[int, int, int]], bool], most: int) -> int:
    """The bits of an accumulator: the largest t such that 2^t + 1 - 2^t is 1 in every order of three places, and one more."""
    orders: list[tuple[int, int, int]] = [(a, b, 3 - a - b) for a in range(3) for b in range(3) if a != b]
    low, high = 0, most + 1
    while high - low > 1:
        t = (low + high) // 2
        low, high = (t, high) if all(survives(t, o) for o in orders) else (low, t)
    return low + 1


def _named(bits: int) -> str | None:
    """The narrowest format that holds so many bits; None beyond all."""
    known = [(formats.get(n).precision, n) for n in ("bfloat16", "float16", "float32", "float64")]
    return next((n for b, n in known if bits <= b), None)


def accumulators(p: Probe) -> list[Line]:
    """The widths of the sums in Q K^T (over the channels) and P V (over the keys)."""
    most = 27 if p.dtype == "float16" else 56
    spots = np.array([0, WIDTH // 2, WIDTH - 1])

    def in_scores(t: int, order: tuple[int, int, int]) -> bool:
        query = np.zeros((1, WIDTH))
        key = np.zeros((2, WIDTH))
        query[0, spots[list(order)]] = [2.0 ** (t // 2), 1, 2.0 ** (t // 2)]
        key[1, spots[list(order)]] = [2.0 ** (t - t // 2), 1, -(2.0 ** (t - t // 2))]
        out, _ = p(query, key, np.eye(2, WIDTH))
        return bool(out[0, 1] > 1.1 * out[0, 0])

    def in_output(t: int, order: tuple[int, int, int]) -> bool:
        value = np.zeros((64, WIDTH))
        top = min(t, 14)
        value[np.array([0, 31, 63])[list(order)], 0] = [2.0**top, 2.0 ** (top - t), -(2.0**top)]
        return bool(p(np.zeros((1, WIDTH)), np.zeros((64, WIDTH)), value)[0][0, 0] * 64 > 2.0 ** (top - t) / 2)

    found = [width_of(in_scores, most), width_of(in_output, most)]
    said = f"measured: {found[0]} bits survive in Q K^T, {found[1]} in P V"
    return [Line("accumulate", _named(min(found)), said)]


def stored(p: Probe) -> Line:
    """Whether scores are stored in the dtype: two that differ by 1/4 near 1000 are then the same."""
    if p.dtype in ("float64", "float32"):
        return Line("store", None, f"nothing to tell in {p.dtype}")
    key = np.zeros((2, WIDTH))
    key[:, 0], key[1, 1] = 4000 if p.dtype == "float16" else 4096, 1
    query = np.zeros((1, WIDTH))
    query[0, :2] = 1
    out = p(query, key, np.eye(2, WIDTH))[0][0]
    same = bool(abs(out[0] - out[1]) < 0.01)
    return Line(
        "store", p.dtype if same else "float32", f"measured: scores are {'rounded to the dtype' if same else 'not rounded'}"
    )


def cast_of_weights(p: Probe) -> Line:
    """Whether weights are rounded to the dtype where V reads them, before or after they are divided by their sum."""
    if p.dtype in ("float64", "float32"):
        return Line("probability", None, f"nothing to tell in {p.dtype}")
    scores = np.unique(p.rounded(np.linspace(0.25, 5, 150)))
    e = np.exp(-scores)
    c = p.rounded(1 / e)
    seen = np.empty(len(scores))
    for k, s in enumerate(scores):
        value = np.zeros((2, WIDTH))
        value[0, 0], value[1, 0] = 1, -c[k]
        seen[k] = p(first_channel(np.array([-4 * s])), np.stack([np.zeros(WIDTH), first_channel(np.ones(1))[0]]), value)[0][0, 0]
    models = {
        "not rounded": (1 - c * e) / (1 + e),
        "rounded before they are divided": (1 - c * p.rounded(e)) / (1 + e),
        "rounded after they are divided": p.rounded(1 / (1 + e)) - c * p.rounded(e / (1 + e)),
    }
    error = {name: float(np.sqrt(np.mean((seen - x) ** 2))) for name, x in models.items()}
    best = min(error, key=lambda name: error[name])
    second = sorted(error.values())[1]
    if second < 2 * error[best]:
        return Line(
            "probability", None, f"assumed: not told apart ({best} fits best, by {second / max(error[best], 1e-300):.1f})"
        )
    remark = f"measured: weights are {best}"
    return Line("probability", "float32" if best == "not rounded" else p.dtype, remark)


def tile(p: Probe) -> Line:
    """The keys of the first tile: a weight is rounded relative to the maximum of its tile, and rescaled without a rounding later.

    Key 0 has score 0 and key k a higher one. In one tile the weight of key 0 is fl(e^-x), and a value of minus that at key k
    cancels it; in an earlier tile it is 1 when it is rounded, and what is left is e^-x - fl(e^-x).
    """
    if "before" not in cast_of_weights(p).remark:
        return Line("tile", None, "not to be seen: no weights that are rounded before they are divided")
    # far from where the rounding turns, and from 0: an exponential with an error of 1e-4 changes neither
    steps = np.arange(0.25, 6, 0.0625)
    e = np.exp(-steps)
    part = np.abs(e - p.rounded(e)) / (p.unit * 2 ** np.floor(np.log2(e)))
    x = float(steps[np.argmin(np.abs(part - 0.55))])
    left = np.exp(-x) - float(p.rounded(np.exp(-x)))

    def together(at: int, k: int, m: int) -> bool:
        key, value = np.zeros((m, WIDTH)), np.zeros((m, WIDTH))
        key[k, 0], value[at, 0], value[k, 0] = 1, 1, -float(p.rounded(np.exp(-x)))
        out = p(first_channel(np.array([4 * x])), key, value)[0][0, 0] * (1 + (m - 1) * np.exp(-x))
        return bool(abs(out) < abs(left) / 2)

    for order, at in (("forward", 0), ("reverse", LONGEST - 1)):
        low, high = 1, LONGEST
        while high - low > 1:
            middle = (low + high) // 2
            same = together(at, middle if at == 0 else at - middle, LONGEST)
            low, high = (middle, high) if same else (low, middle)
        if high < LONGEST:
            return Line("tile", high, f"measured: keys in {order} order, {high} of them share a maximum")
    return Line("tile", None, f"measured: none up to {LONGEST} keys")


def buffers(p: Probe) -> list[Line]:
    """The widths of what dQ grows in over the keys, and dK and dV over the queries."""
    if not p.can(backward=True):
        return [Line("dq_accumulate", None, "no backward"), Line("dkv_accumulate", None, "no backward")]
    most, m = (24, 2048) if p.dtype == "float16" else (30, 2048)
    spots = np.array([0, m // 2, m - 1])

    def in_dq(t: int, order: tuple[int, int, int]) -> bool:
        key, value = np.zeros((m, WIDTH)), np.zeros((m, WIDTH))
        top = min(t, 12)
        key[spots[list(order)], 1] = [2.0**top, 2.0 ** (top - t), -(2.0**top)]
        value[spots, 0], value[spots + np.array([1, 1, -1]), 0] = m, -m
        grad = p.gradients(np.zeros((1, WIDTH)), key, value, first_channel(np.ones(1)))["grad_query"][0, 1]
        return bool(grad > 2.0 ** (top - t) / 4 / 2)

    def in_dv(t: int, order: tuple[int, int, int]) -> bool:
        top = min(t, 12)
        grad = np.zeros((m, WIDTH))
        grad[spots[list(order)], 0] = [2.0**top, 2.0 ** (top - t), -(2.0**top)]
        x = np.zeros((1, WIDTH))
        return bool(p.gradients(np.zeros((m, WIDTH)), x, x, grad)["grad_value"][0, 0] > 2.0 ** (top - t) / 2)

    found = []
    for field, test in (("dq_accumulate", in_dq), ("dkv_accumulate", in_dv)):
        bits = width_of(test, most)
        found.append(Line(field, _named(bits), f"measured: {bits} bits survive over {m} places"))
    return found


def scale_of(p: Probe) -> Line:
    """Where the scale is taken: after the product, or on queries, keys or both, rounded to the dtype."""
    if not p.can(scale=True):
        return Line("scale_before", None, "the kernel takes no scale")
    if p.dtype in ("float64", "float32"):
        return Line("scale_before", None, f"assumed: not told apart in {p.dtype}")
    s, q = 0.71, np.unique(p.rounded(np.linspace(4.01, 6.9, 60)))
    query, key = filled(q, np.stack([np.zeros(WIDTH), first_channel(np.full(1, 1.1875))[0]]))
    out, lse = p(query, key, np.eye(len(key), WIDTH), scale="71/100")
    k, root = 1.1875, np.sqrt(s)
    seen = np.log(out[:, 1] / out[:, 0]) if lse is None else np.log(np.expm1(lse))
    models = {
        "after the product": (0, q * k * s),
        "on the queries": (1, p.rounded(q * s) * k),
        "on the keys": (1, q * p.rounded(k * s)),
        "on both, its root": (2, p.rounded(q * root) * p.rounded(k * root)),
    }
    error = {name: float(np.std(seen - x)) for name, (_, x) in models.items()}  # exp(0) may be off by a constant
    best = min(error, key=lambda name: error[name])
    if sorted(error.values())[1] < 2 * error[best]:
        return Line("scale_before", None, f"assumed: not told apart ({best} fits best)")
    return Line("scale_before", models[best][0], f"measured: the scale is taken {best}")


def lines(kernel: Kernel, dtype: str) -> Iterable[Line]:
    """All probes of a kernel in a dtype.

    Raises
    ------
    DefinitionError
        When the kernel does not compute plain attention in that dtype.
    KernelError
        When it raises.
    """
    p = Probe(kernel, formats.get(dtype).name)
    if p.dtype not in SHORT:
        raise DefinitionError(f"the probe is for {', '.join(SHORT)}, got {p.dtype}")
    if not kernel.takes_dtype(p.dtype) or not p.can():
        raise DefinitionError(f"{kernel.name} does not compute plain attention in {p.dtype}: it cannot be probed")
    found = [exp_error(p), *accumulators(p), stored(p), cast_of_weights(p), tile(p), *buffers(p), scale_of(p)]
    by = {line.field: line for line in found}
    if by["accumulate"].value is not None:
        for field in ("dq_accumulate", "dkv_accumulate"):
            line = by[field]
            wide = (
                line.value is not None
                and formats.get(str(line.value)).precision >= formats.get(str(by["accumulate"].value)).precision
            )
            by[field] = replace(line, value=None, remark=f"{line.remark}, as in other sums") if wide else line
    return by.values()


def table(kernel: Kernel, dtype: str) -> str:
    """The table as TOML.

    >>> from symattn.verify.kernels.registry import resolve
    >>> print(table(resolve("numpy:flash"), "float64").splitlines()[1])
    preset = "flash-fp64"  # assumed: what is not below
    """
    name = formats.get(dtype).name
    shown = kernel.versions() or "no packages"
    found = list(lines(kernel, dtype))
    head = [f"# {kernel.name} in {name} ({shown}), seen from outside"]
    eager = any(x.field == "store" and x.value == name for x in found)
    head += [f'preset = "{"eager" if eager else "flash"}-{SHORT[name]}"  # assumed: what is not below']
    head += [f'name = "{kernel.name} as probed"']
    if not eager and any("after they are" in x.remark for x in found):
        head += ['algorithm = "naive"  # measured: weights are divided first', "staged = false"]
    return "\n".join([*head, *(line.toml() for line in found)]) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """The command line; exit code 2 for what cannot be probed."""
    import argparse
    import sys

    from symattn.errors import SymattnError
    from symattn.verify.kernels.registry import resolve

    parser = argparse.ArgumentParser(prog="python -m symattn.verify.kernels.probe", description="Measures a kernel's arithmetic.")
    parser.add_argument("kernel", help="a built-in name, FILE.py:FUNCTION or MODULE:FUNCTION")
    parser.add_argument("--dtype", default="float32", help="float64, float32 (default), float16, bfloat16")
    parser.add_argument("--layout", default="bhsd", choices=["bhsd", "bshd"], help="of a function of your own")
    given = parser.parse_args(arguments)
    try:
        sys.stdout.write(table(resolve(given.kernel, layout=given.layout), given.dtype))
    except SymattnError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
