"""Slopes."""

from symattn.readings.slopes.bounded import Bounded, bounds

__all__ = ["Bounded", "bounds"]
