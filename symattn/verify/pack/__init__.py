"""The default pack of inputs: sizes, laws of numbers, and the kinds of input that these make."""
