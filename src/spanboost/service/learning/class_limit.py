"""A limit on the classes that clients may add, applied before a row is written to the journal."""

from copy import deepcopy
from math import nan

from spanboost.data.target import ClassTarget, LabelError, Target

LONGEST_NAME = 256  # characters; all names are in memory, and in every prediction


class LimitedClasses(ClassTarget):
    """The classes of a model, to which a request may add a few.

    most: largest number of classes; reason: what sets it.
    """

    def __init__(self, target: ClassTarget, most: int, reason: str) -> None:
        super().__init__(target.classes)
        self.values = [*target.values]
        self.most, self.reason = most, reason

    def _encode(self, value: str) -> float:
        if value not in self.values and len(value) > LONGEST_NAME:
            return nan
        return self._index(value, self.most)

    def _error(self, text: str) -> LabelError:
        if len(text) > LONGEST_NAME:
            most = f"the name of a class may have {LONGEST_NAME}"
            return LabelError(f"has {len(text):,} characters; {most}")
        if self.classes is not None:
            return super()._error(text)
        return LabelError(f"would be class number {len(self.values) + 1:,}, and {self.reason}")


def limit_classes(target: Target, most: int, reason: str) -> Target:
    """Return a copy of a target that does not have more than `most` classes."""
    if not isinstance(target, ClassTarget):
        return deepcopy(target)
    most = most if target.classes is None else target.classes
    return LimitedClasses(target, max(most, len(target.values)), reason)
