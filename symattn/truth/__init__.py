"""Ground truth: values with a proven radius, as many digits as asked."""

from symattn.truth.enclosure import Enclosure, How
from symattn.truth.truth import Truth, truth

__all__ = ["Enclosure", "How", "Truth", "truth"]
