"""Find out that no label equals the value of --positive, or that all labels are equal."""

from collections.abc import Iterator

from spanboost.analysis.label_sums import LabelSums
from spanboost.data.batch import Batch
from spanboost.data.problems import StreamError
from spanboost.data.target import BinaryTarget, NumberTarget, Target, canonical
from spanboost.errors import did_you_mean

_FEW = 1000  # labels without the positive one, from which on a similar one is a mistake
_SHORT = 4  # characters of a word whose typing errors are recognised, at least


class PositiveLabel:
    """Watches the labels of a pass for the one that --positive names."""

    def __init__(self, target: Target, labels: LabelSums) -> None:
        self._target, self._labels = target, labels
        self._warned = False

    def refuse_misspelt(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches; raise a StreamError before more is learned if --positive is misspelt.

        That is so if none of 1,000 labels or more is the positive one, and one differs from it
        only by its case, by spaces or by a typing error.
        """
        rows, positive = 0, getattr(self._target, "positive", None) or ""
        found = not self._is_missing()
        for batch in batches:
            rows += batch.rows
            found = found or bool((batch.labels > 0).any())
            similar = (is_misspelt(positive, label) for label in self._target.values)
            if not found and rows >= _FEW and any(similar):
                raise StreamError(f"in the first {rows:,} rows, {self._problem()}")
            yield batch

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


def is_misspelt(name: str, label: str) -> bool:
    """Return whether a name differs from a label only by case, spaces or one typing error.

    Labels such as class1 and class2, or typical and atypical, differ for a reason.
    """
    one, other = ("".join(canonical(text).casefold().split()) for text in (name, label))
    if one == other:
        return True
    if min(len(one), len(other)) < _SHORT or one[0] != other[0]:
        return False
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    swapped = len(one) == 2 and one == other[::-1]
    return (one + other).isalpha() and (swapped or max(len(one), len(other)) == 1)


def warn_of_one_class(target: Target) -> str | None:
    """Return a warning if a target of classes has seen only one; None otherwise."""
    positive = target.positive if isinstance(target, BinaryTarget) else None
    if isinstance(target, NumberTarget) or len(target.values) > (0 if positive is not None else 1):
        return None
    seen = target.values[0] if target.values else positive
    return f"warning: all labels are {seen!r}; the model has learned a single class"
