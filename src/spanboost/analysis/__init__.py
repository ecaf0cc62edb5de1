"""Progressive validation, explanations, drift and pictures of models."""
