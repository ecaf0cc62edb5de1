"""The guarantees of online and batch gradient boosting, as numbers and as experiments."""
