"""The exact reference for the attention mechanism."""
__version__ = "0.1.0"
