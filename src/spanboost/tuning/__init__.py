"""Tuning in one pass: a grid of boosters learns the same rows."""
