"""An attention written down densely for tests, in torch float64 with autograd: shares no code with what is tested."""

from __future__ import annotations

import numpy as np


def dense(torch, f, *, keep, kv_head, scale, softcap=None, slopes=None, distance=None, sinks=None, add=None,
          drop=None, p=0.0, base2=False, empty_row="zero", grad_out=None, grad_lse=None):  # fmt: skip
    """Outputs and gradients by field name, all float64."""
    t = {k: torch.tensor(np.asarray(v, dtype=np.float64), requires_grad=True) for k, v in f.items()}
    K, V = t["key"][:, kv_head], t["value"][:, kv_head]
    keep = torch.tensor(np.ascontiguousarray(keep))
    s = torch.einsum("bhic,bhjc->bhij", t["query"], K) * scale
    if softcap is not None:
        s = softcap * torch.tanh(s / softcap)
    if slopes is not None:
        s = s - t["alibi_slopes"][None, :, None, None] * torch.tensor(np.asarray(distance, dtype=np.float64))
    if add is not None:
        s = s + torch.where(torch.isfinite(t[add]), t[add], 0.0)
    s = s.masked_fill(~keep, -torch.inf)
    logits = s
    if sinks is not None:
        column = t["sinks"][None, :, None, None].expand(*s.shape[:3], 1)
        logits = torch.cat([s, column], -1)
    empty = torch.isneginf(logits).all(-1)
    safe = torch.where(empty[..., None], 0.0, logits)
    w = torch.softmax(safe, -1)[..., : s.shape[-1]]
    w = torch.where(keep & ~empty[..., None], w, 0.0)
    if drop is not None:
        w = w * torch.tensor(drop.astype(float)) / (1 - p)
    out = torch.einsum("bhij,bhje->bhie", w, V)
    if empty_row == "uniform":
        out = torch.where(empty[..., None], V.mean(2, keepdim=True), out)
    lse = torch.logsumexp(safe, -1) / (np.log(2) if base2 else 1.0)
    found = {"out": out.detach().numpy(), "lse": np.where(empty, -np.inf, lse.detach().numpy())}
    if grad_out is not None:
        loss = (out * torch.tensor(grad_out.astype(float))).sum()
        if grad_lse is not None:
            loss = loss + torch.where(empty, 0.0, lse * torch.tensor(grad_lse.astype(float))).sum()
        grads = torch.autograd.grad(loss, list(t.values()), allow_unused=True)
        found |= {f"grad_{k}": g.numpy() for k, g in zip(t, grads, strict=True) if g is not None}
    return found
