"""Progressive validation, explanations, drift detection and plots of models."""
