"""Kernels judged against the truth: adapters of kernels, inputs, intake of arrays and files, the judge and its report."""
