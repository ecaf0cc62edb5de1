"""Prediction intervals compared with those of other libraries."""
