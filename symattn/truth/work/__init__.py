"""Work on many cores and machines: a job cut into blocks, done by any executor, the same bits however it is done."""

from symattn.truth.work.crew import Work

__all__ = ["Work"]
