"""Errors in data, and the treatment of bad rows."""

from spanboost.errors import UserError


class StreamError(UserError):
    """Data that cannot be read, or unsuitable options for reading it."""


class Problems:
    """Collects bad rows: the first one is an error, or (`skip`) they are skipped and counted.

    `notes` says how data are read where that may surprise the user.
    """

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip
        self.count = 0
        self.first: list[str] = []  # the first five messages
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Add a note, unless it is already there."""
        if text not in self.notes:
            self.notes.append(text)

    def report(self, file: str, line: int, what: str) -> None:
        """Report a bad row by its line number (for Parquet and Arrow: row number), from 1."""
        message = f"{file}:{line}: {what}"
        if not self.skip:
            raise StreamError(message)
        self.count += 1
        if len(self.first) < 5:
            self.first.append(message)
