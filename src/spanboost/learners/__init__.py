"""Weak learners, each a bank of N copies behind one protocol."""
