"""The threads of the service that predict and learn."""
