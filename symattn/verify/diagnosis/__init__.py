"""The diagnosis: which faults explain a kernel that is out of bounds, or what its deviation looks like."""
