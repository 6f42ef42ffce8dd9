"""Arithmetic cost as symbols: a reading of a program, tables of one variant and of several side by side."""
