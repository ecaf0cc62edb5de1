"""Weak learners. Each one trains N copies at once, through the protocol in protocol.py.

- linear.py, stumps.py, network.py: gradient descent on features (descent.py, feature_weights.py).
- ridge.py: least squares (least_squares.py, columns.py).
- feature_scales.py: the scales of features.
- trees.py: regression trees that grow online (candidates.py, leaf_rules.py, pools.py).
- ball.py, finite.py, symmetric.py: learners with a regret bound, as the theorems need them.
- objects.py, external/: Python objects, and learners of other libraries.
- from_bank.py: your own compiled learner.
- contributions.py: the contribution of each feature to a prediction.
"""
