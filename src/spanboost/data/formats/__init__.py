"""Readers for the file formats."""
