"""The gradient as a derivation: differentials, the rule, pairings read backwards, and the form that kernels use."""
