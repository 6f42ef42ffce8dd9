"""Attention emulated step by step: in float64, with the range and the roundings of a kernel where a fault is one of these."""
