"""Benchmark commands. They are not installed with the package."""
