"""What a program means in one setting each: values in a number type, LaTeX, rounding bounds. A reading knows no attention."""
