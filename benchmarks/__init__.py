"""Benchmarks: commands that measure and print a table. Not installed with the package."""
