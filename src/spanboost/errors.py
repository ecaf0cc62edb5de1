"""The one exception for bad data, and the one warning."""


class DataError(ValueError):
    """A row that cannot be learned or predicted; nothing of its block was learned.

    `row` is the row's number in the block that was given, counted from 0.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(row, what)
        self.row = row

    def __str__(self) -> str:
        return f"row {self.row}: {self.args[1]}"


class LabelWarning(UserWarning):
    """A label so far from all before it that what was learned shrinks to almost nothing."""
