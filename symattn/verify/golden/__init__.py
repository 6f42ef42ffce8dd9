"""Golden files: inputs, correctly rounded results and per-element bounds for tests in any language, and the judge of what came
back.

A folder holds ``manifest.json`` and, per dtype and input, a case: a folder of ``.npy`` files and the same tensors in one
``.safetensors`` file. :mod:`.writing` makes it, :mod:`.judging` reads a second folder of outputs against it.
"""
