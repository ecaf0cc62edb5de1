"""Weak learners. Each one trains N copies at once, through the same protocol."""
