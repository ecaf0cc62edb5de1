"""Accuracy, ROC AUC, calibration, RMSE and other metrics of predictions, in constant memory.

The state of every metric is a NamedTuple of arrays. The states of two parts of a stream can be
merged: the result is the state of both parts together.
"""
