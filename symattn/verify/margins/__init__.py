"""What a verdict says beside pass and fail: what a bound is made of, what would conform, what would have shown, what is suspect.

All of it is read off runs that were judged (:class:`symattn.verify.observed.Observed`), and none of it turns a fail into a pass
or a pass into a fail.

* :mod:`~symattn.verify.margins.terms`: of a failure, the bound of the worst element split by the sources of errors.
* :mod:`~symattn.verify.margins.implied`: of a failure, the least change of one declared constant under which the kernel conforms.
* :mod:`~symattn.verify.margins.power`: of a pass, the smallest error of the scale, gain and lost key that would have shown.
* :mod:`~symattn.verify.margins.suspicion`: of a pass, what is unlikely though possible; *estimated*, never a failure.
"""

from symattn.verify.margins.margins import Margins

__all__ = ["Margins"]
