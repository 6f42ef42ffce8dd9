"""Tolerances for tests elsewhere: bounds for all inputs of given magnitudes, and pairs of atol and rtol."""
