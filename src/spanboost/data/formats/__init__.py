"""Readers, one for each file format."""
