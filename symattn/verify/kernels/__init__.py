"""Kernels under test: what one is, adapters of real ones, functions of users, and how each is named."""
