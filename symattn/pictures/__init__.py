"""Pictures of weights, scores, errors and Jacobians: what is drawn as plain data, and its drawing as PDF, SVG or PNG.

:mod:`.weights`, :mod:`.jacobian` and :mod:`.errors` make a :class:`.chart.Chart` of exact values; :mod:`.drawing` draws it with
matplotlib (extra ``plot``), which nothing else here imports.
"""

from __future__ import annotations
