"""The limb engine: 72 to about 900 bits at the speed of matrix products in float64, with a radius that is proved beforehand."""
