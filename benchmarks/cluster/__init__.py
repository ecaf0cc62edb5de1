"""Benchmarks of clusters."""
