"""Train one model with several workers, on this machine or a Ray cluster."""
