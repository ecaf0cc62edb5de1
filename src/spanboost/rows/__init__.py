"""Checking and encoding of the rows and labels that users pass in."""
