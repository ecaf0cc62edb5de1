"""Compile kernels with Numba, and keep the compiled code on disk."""
