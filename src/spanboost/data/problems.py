"""Errors in data, and the treatment of bad rows."""

from collections.abc import Collection

from spanboost.errors import UserError, did_you_mean
from spanboost.rows.unknown_categories import UnknownCategories

LEAVE_OUT = "; to leave out such rows, use --on-error skip"
_FIRST_ROW = 2  # the last line that can have it: a header may come first
_SETTLED = 100  # after this many lines, a bad row is an exception, not a file read in a wrong way


class StreamError(UserError):
    """Data that cannot be read, or unsuitable options for reading it."""


class Problems:
    """Collects bad rows: the first one is an error, or (`skip`) they are skipped and counted.

    `notes` says how data are read where that may surprise the user. `unknown` watches categories
    that are only predicted.
    """

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip
        self.count = 0
        self.first: list[str] = []  # the first five messages
        self.notes: list[str] = []
        self.unknown = UnknownCategories()

    def note(self, text: str) -> None:
        """Add a note, unless it is already there."""
        if text not in self.notes:
            self.notes.append(text)

    def report(self, file: str, line: int, what: str) -> None:
        """Report a bad row by its line number (for Parquet and Arrow: row number), from 1."""
        message = f"{file}:{line}: {what}"
        if not self.skip:
            raise StreamError(f"{message}{LEAVE_OUT if _may_be_left_out(line, what) else ''}")
        self.count += 1
        if len(self.first) < 5:
            self.first.append(message)


def _may_be_left_out(line: int, what: str) -> bool:
    """Return whether to advise leaving out such rows; another option may be the better advice."""
    advised = " --" in what
    if "the label " in what:  # the first row says that all labels are classes, a later one not
        return not advised or (line > _FIRST_ROW and " --loss" in what)
    return line > _SETTLED and not advised


def suggest_name(name: str, names: Collection[str]) -> str:
    """Return the end of a message about a column or key that is not among these names."""
    parts = name.split(",")
    if len(parts) > 1 and all(part.strip() in names for part in parts):
        return (
            "; a model of the command line has one label, train one for each; in Python, the "
            "estimators predict several (docs/scikit-learn.md)"
        )
    for one in names:
        if name in one.split(","):
            return f"; if it is {one!r:.40}, write this name in double quotes: '\"{one:.40}\"'"
    return did_you_mean(name, names)
