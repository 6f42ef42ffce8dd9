"""Derivations of kernels: from the definition to the algorithm, as pseudo-code, with the proof that they are equal.

>>> from symattn.derivation.kernels import KERNELS
>>> list(KERNELS)
['online-softmax', 'flash-forward', 'flash-backward', 'split-k', 'ring']
"""

from symattn.derivation.kernels.page import derive_kernel
from symattn.derivation.kernels.table import KERNELS

__all__ = ["KERNELS", "derive_kernel"]
