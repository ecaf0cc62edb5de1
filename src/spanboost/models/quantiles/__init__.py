"""Quantiles and prediction intervals: shaped by past residuals, with levels calibrated online."""
