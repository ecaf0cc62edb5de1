"""Streams with labels, trends, units and features that could ruin a model."""
