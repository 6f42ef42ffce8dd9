"""Ground truth: values with a proven radius, as many digits as asked."""
