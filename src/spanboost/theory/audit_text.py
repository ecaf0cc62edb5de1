"""Bounds and audits as text and as HTML."""

from collections.abc import Mapping

from spanboost.models.html import rounded, section, table


def describe_sum(terms: Mapping[str, float]) -> str:
    """Return a sum and its terms as text."""
    parts = ", ".join(f"{name} {value:z.4g}" for name, value in terms.items())
    return f"{sum(terms.values()):z.4g} ({parts})"


def audit_html(loss: float, comparator: float, bounds: Mapping[str, float]) -> str:
    """Return the losses of an audit and the parts of its bounds as HTML."""
    losses = {"loss": loss, "loss of the comparator": comparator}
    rows = [(name, rounded(value)) for name, value in {**losses, **bounds}.items()]
    return section(f"regret {rounded(loss - comparator)}", table(rows))
