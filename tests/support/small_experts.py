"""A default budget of AutoBoost that takes little time."""

from spanboost.models import auto


def set_small_experts(monkeypatch):
    """Replace the experts of the default budget by two small ones."""
    small = {"depth": 3, "candidates": 8, "evidence": 1.0, "grace": 8, "delay": 2}
    experts = (
        auto.Expert("trees", auto.Trees, small, 4, 0.5),
        auto.Expert("linear", auto.LinearSGD, {}),
    )
    monkeypatch.setitem(auto.EXPERTS, "default", experts)
