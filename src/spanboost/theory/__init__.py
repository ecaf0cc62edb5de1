"""The guarantees of online and batch gradient boosting, as functions and as experiments."""
