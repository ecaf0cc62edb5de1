"""Estimators of other libraries that are fitted again and again to the rows of a stream."""
