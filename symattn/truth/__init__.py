"""Ground truth: values with a proven radius, as many digits as asked."""

from symattn.truth.enclosure import Enclosure
from symattn.truth.truth import truth

__all__ = ["Enclosure", "truth"]
