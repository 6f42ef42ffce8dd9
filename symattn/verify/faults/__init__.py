"""Faults that attention kernels shipped, as data: what each computes, and where it shows; see ``catalogue``."""
