"""An HTTP service that predicts rows and learns from their labels when they arrive."""
