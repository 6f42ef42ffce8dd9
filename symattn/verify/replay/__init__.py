"""Replay: the cast of the weights emulated, from a list of statements and a declaration with tiles, order and shift."""
