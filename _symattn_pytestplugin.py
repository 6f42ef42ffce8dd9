"""Entry point of the pytest plugin; imports nothing but pytest."""
