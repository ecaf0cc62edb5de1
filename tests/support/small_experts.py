"""A default budget of AutoBoost that takes little time."""

from spanboost import LinearSGD, Trees
from spanboost.models.budgets import EXPERTS, Expert


def set_small_experts(monkeypatch):
    """Replace the experts of the default budget by two small ones."""
    small = {"depth": 3, "candidates": 8, "evidence": 1.0, "grace": 8, "delay": 2}
    experts = (Expert("trees", Trees, small, 4, 0.5), Expert("linear", LinearSGD, {}))
    monkeypatch.setitem(EXPERTS, "default", experts)
