"""What users are told: errors that are theirs to mend, and warnings."""

import sys
import warnings

_PACKAGE = __name__.partition(".")[0] + "."


class DataError(ValueError):
    """A row that cannot be learned or predicted; nothing of its block was learned.

    `row` is the row's number in the block that was given, counted from 0.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(row, what)
        self.row, self.what = row, what

    def __str__(self) -> str:
        return f"row {self.row}: {self.what}"


class ParameterError(ValueError):
    """A parameter whose value is not allowed: its name, and what is wrong with it."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


class UserError(ValueError):
    """Something only the user can mend; its message is one sentence, and all that is needed."""


class UsageError(UserError):
    """Options that do not go together; one sentence says why."""


class ModelFileError(UserError):
    """A file that holds no model this version can read."""


class ClusterError(RuntimeError):
    """Machines that were to do the work have failed; its message is one sentence."""


class LabelWarning(UserWarning):
    """A label so far from all before it that what was learned shrinks to almost nothing."""


class ConstantWarning(UserWarning):
    """A loss without the constants of the theorems: they are estimated."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """A warning that points at the first line outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
