"""The bound of a tiled softmax attention as one derives it by hand, in NumPy: centred on the output, rigorous, no code shared.

For one row with true weights p, output O, log-sum-exp L, scores z and x = max z - z. The exponent of a computed weight is off
by at most E beyond what is common to the row, so the computed weights are c p (1 + theta) with |theta| <= T and one unknown c,
and

    computed O - O = sum p [(1 + theta)(1 + pi)(V - O) + (1 + theta)(pi V' ...)] / sum p (1 + theta)(1 + b)

because ``sum p (V - O) = 0``. One rounding of relative size u is applied for each operation; subnormals may be flushed.
"""

import numpy as np

U = 2.0**-24
TINY = 2.0**-126
CAST = {"bfloat16": (2.0**-8, 2.0**-134), "float16": (2.0**-11, 2.0**-25), "float32": (0.0, 0.0)}
OUT = {"bfloat16": (2.0**-8, 2.0**-134), "float16": (2.0**-11, 2.0**-25), "float32": (0.0, 0.0)}


def gamma(n, u=U):
    return n * u / (1 - n * u)


def forward(q, k, v, scale, io, tile, function=8 * U, shift=4, stored=2 * U):
    """Bounds of O (H, n, d) and of the log-sum-exp (H, n); the scale, a power of two, may itself be off by ``stored``."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    n, d = k.shape[1], k.shape[2]
    rescalings = -(-n // tile) - 1
    z = scale * q @ k.swapaxes(1, 2)
    t = scale * np.abs(q) @ np.abs(k).swapaxes(1, 2)
    m = z.max(-1, keepdims=True)
    x, e = m - z, np.exp(z - m)
    total = e.sum(-1, keepdims=True)
    p, log = e / total, np.log(total[..., 0])
    o, lse = p @ v, m[..., 0] + log
    a = gamma(d) * t
    a = a + U * (np.abs(z) + a) + 2 * d * scale * TINY
    most = a.max(-1, keepdims=True)
    exponent = (1 + stored) * a + (U + stored) * (x + 2 * most)
    more = (1 + function) ** (1 + rescalings)
    theta, least = np.exp(exponent) * more - 1, np.exp(-exponent) / more
    g_l, g_n = gamma(n - 1 + rescalings), gamma(n + rescalings)
    u_p, eta_p = CAST[io]
    psi = (1 + u_p) * (1 + g_n) - 1
    omega = (1 - g_l) * (p * least).sum(-1, keepdims=True)
    centred = np.einsum("hij,hije->hie", p * theta, np.abs(v[:, None] - o[:, :, None]))
    spread = (p * (1 + theta)) @ np.abs(v)
    shared = 1 + (p * theta).sum(-1, keepdims=True)
    under = (eta_p * np.abs(v).sum(1)[:, None] + TINY * (np.abs(v).sum(1)[:, None] + n * (np.abs(o) + 2))) / total
    inner = (centred + psi * spread + g_l * shared * np.abs(o) + under) / omega
    u_o, eta_o = OUT[io]
    kappa = (1 + U) * (1 + u_o) - 1
    of_o = inner * (1 + kappa) + kappa * np.abs(o) + eta_o
    exponent = (1 + stored) * a + U * (x + 2 * most)  # the scale moves all scores of a row together, by its mean score
    theta, least = np.exp(exponent) * more - 1, np.exp(-exponent) / more
    beta = g_l + (1 + g_l) * (p * theta).sum(-1)
    beta = np.maximum(np.log1p(beta), -np.log((1 - g_l) * (p * least).sum(-1)))
    beta = beta + stored * np.abs((p * z).sum(-1))
    size = np.abs(m[..., 0]) + most[..., 0]
    of_l = beta + function * (np.abs(log) + beta) + shift * U * size + U * (np.abs(lse) + beta + shift * U * size)
    return of_o, of_l
