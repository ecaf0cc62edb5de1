"""Errors in data, and the treatment of bad rows."""

from spanboost.errors import UserError


class StreamError(UserError):
    """Data that cannot be read, or unsuitable options for reading it."""


class Problems:
    """Collects bad rows: the first one is an error, or (`skip`) they are skipped and counted."""

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip
        self.count = 0
        self.first: list[str] = []  # the first five messages

    def report(self, file: str, line: int, what: str) -> None:
        """Report a bad row by its line number (for Parquet and Arrow: row number), from 1."""
        message = f"{file}:{line}: {what}"
        if not self.skip:
            raise StreamError(message)
        self.count += 1
        if len(self.first) < 5:
            self.first.append(message)
