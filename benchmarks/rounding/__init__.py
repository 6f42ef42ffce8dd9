"""Measured: how tight the derived rounding bounds are, that no correct kernel leaves them, and which planted faults do.

``python -m benchmarks.rounding`` runs everything and writes ``docs/tolerance_table.md``. Kernels are simulated in NumPy with
every rounding explicit (:mod:`.kernels`, :mod:`.gradients`); nothing in them reads symattn. Verdicts come from the public pieces
alone: :func:`symattn.readings.slopes.bounds` and :class:`symattn.verify.replay.bounds.Replay` (:mod:`.judging`).
"""
