"""What is wrong with data, and what becomes of a bad row."""

from spanboost.errors import UserError


class StreamError(UserError):
    """Data, or options for reading it, that cannot be used; one sentence says why."""


class Problems:
    """Bad rows: the first one ends the reading, or they are left out and counted (`skip`)."""

    def __init__(self, skip: bool = False) -> None:
        self.skip = skip
        self.count = 0
        self.first: list[str] = []  # the first few, for a report

    def bad(self, file: str, line: int, what: str) -> None:
        """The row at this line, counted from 1 (of Parquet and Arrow: this row), is bad."""
        message = f"{file}:{line}: {what}"
        if not self.skip:
            raise StreamError(message)
        self.count += 1
        if len(self.first) < 5:
            self.first.append(message)
