"""Choose parameters in one pass: a grid of boosters over the same rows."""
