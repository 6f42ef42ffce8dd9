"""Properties that need no exact value: equations between a kernel's own tensors, and what must not change on a second run."""
