"""Find out that no label equals the value of --positive, or that all labels are equal."""

from spanboost.analysis.label_sums import LabelSums
from spanboost.data.problems import StreamError
from spanboost.data.target import BinaryTarget, NumberTarget, Target
from spanboost.errors import did_you_mean


class PositiveLabel:
    """Watches the labels of a pass for the one that --positive names."""

    def __init__(self, target: Target, labels: LabelSums) -> None:
        self._target, self._labels = target, labels
        self._warned = False

    def warning(self, rows: int) -> str | None:
        """Return a warning as soon as two other labels have occurred, once."""
        if self._warned or len(self._target.values) < 2 or not self._is_missing():
            return None
        self._warned = True
        return f"warning: in the first {rows:,} rows, {self._problem()}"

    def check(self) -> None:
        """Raise a StreamError if the label did not occur in any row."""
        if self._is_missing():
            raise StreamError(self._problem())

    def _is_missing(self) -> bool:
        target, labels = self._target, self._labels
        if not isinstance(target, BinaryTarget) or target.positive is None:
            return False
        return labels.label_sum == -labels.weight  # all labels are -1

    def _problem(self) -> str:
        assert isinstance(self._target, BinaryTarget)
        positive, others = self._target.positive, self._target.values
        near = did_you_mean(positive, others) or "; check its spelling"
        return f"no label equals {positive!r} (--positive){near}"


def warn_of_one_class(target: Target) -> str | None:
    """Return a warning if a target of classes has seen only one; None otherwise."""
    positive = target.positive if isinstance(target, BinaryTarget) else None
    if isinstance(target, NumberTarget) or len(target.values) > (0 if positive is not None else 1):
        return None
    seen = target.values[0] if target.values else positive
    return f"warning: all labels are {seen!r}; the model has learned a single class"
