"""Float64 with a running bound, for any program: the first tier of the ground truth."""

from symattn.truth.double.bounded import Bounded
from symattn.truth.double.evaluate import evaluate

__all__ = ["Bounded", "evaluate"]
