"""What the messages of a batch ask for: rows to predict, and labels to learn.

A row without a label is predicted, and waits for its label under its id. A row with a label is
learned. An id with a label, and nothing else, is the label of a row that waits.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from spanboost.data.formats.jsonl import BadRowError, as_row
from spanboost.data.messages.message import Message, Outgoing
from spanboost.data.messages.payloads import decode_payload
from spanboost.service.request_rows import Example, Row, RowParser

_EMPTY = "the row has neither features nor a label"


class RowToPredict(NamedTuple):
    """A row without a label."""

    number: int
    id: str
    row: Row


class BadRow(NamedTuple):
    """A row that cannot be used, and why; `summary` has no values of the row."""

    number: int
    reason: str
    summary: str | None = None


class MessageBatch:
    """The rows of some messages, numbered in their order."""

    def __init__(
        self,
        messages: Sequence[Message],
        parser: RowParser,
        waits: Callable[[str], bool],
        explain_missing: Callable[[str], str],
        *,
        labels_only: bool = False,
    ) -> None:
        """Parse messages.

        waits: returns whether a row with this id waits for its label, or was learned.
        explain_missing: returns why a label without such a row cannot be learned.
        labels_only: whether all messages must have labels.
        """
        self.messages = messages
        self.to_predict: list[RowToPredict] = []
        self.examples: dict[int, Example] = {}
        self.bad: list[BadRow] = []
        self.unknown: list[int] = []  # numbers of labels whose row is not known
        self._parser, self._waits = parser, waits
        self._explain_missing, self._labels_only = explain_missing, labels_only
        self._origins: list[tuple[int, int]] = []  # for each row: its message, its index in it
        self._ids = set[str]()  # of rows up to the current one
        for index, message in enumerate(messages):
            self._add_message(index, message)

    @property
    def positions(self) -> dict[str, Any]:
        """The position of the last message of each place."""
        return {message.place: message.position for message in self.messages}

    def dead_letters(self, bad: Sequence[BadRow]) -> list[Outgoing]:
        """Return the messages of some bad rows, each once, with the reasons in their headers."""
        reasons, rows = dict[int, str](), dict[int, list[int]]()
        for number, reason, _ in sorted(bad, key=lambda one: one.number):
            index, row = self._origins[number]
            reasons.setdefault(index, reason)
            rows.setdefault(index, []).append(row)
        return [
            Outgoing(
                _key(self.messages[index]),
                self.messages[index].payload,
                {
                    "reason": reason,
                    "place": self.messages[index].place,
                    "position": str(self.messages[index].position),
                    "rows": ",".join(map(str, rows[index])),
                },
            )
            for index, reason in reasons.items()
        ]

    def describe(self, bad: BadRow) -> str:
        """Return that a message cannot be used, and why, without values of its rows."""
        index, row = self._origins[bad.number]
        several = sum(index == other for other, _ in self._origins) > 1
        which = f"row {row} of " if several else ""
        why = "" if bad.summary is None else f" ({bad.summary})"
        return f"{which}{self.messages[index]} cannot be used{why}"

    def message_of(self, number: int) -> int:
        """Return the index of the message that has a row."""
        return self._origins[number][0]

    def _add_message(self, index: int, message: Message) -> None:
        try:
            values = decode_payload(message.payload, exact=self._parser.exact)
        except BadRowError as error:
            values = [error]
        for row, value in enumerate(values):
            number = len(self._origins)
            self._origins.append((index, row))
            default_id = _key(message) if len(values) == 1 else f"{_key(message)}/{row}"
            try:
                self._add_value(number, value, default_id)
            except BadRowError as error:
                self.bad.append(
                    BadRow(number, str(error), error.summary or summarise_field(error.field))
                )

    def _add_value(self, number: int, value: Any, default_id: str) -> None:
        if isinstance(value, BadRowError):
            raise value
        row, parser = as_row(value), self._parser
        if row.get(parser.label) is not None or self._labels_only:
            self._add_example(number, parser.parse_example(row))
            return
        id, features = parser.parse_features(row)
        if not features:
            raise BadRowError(_EMPTY, summary=_EMPTY)
        self.to_predict.append(RowToPredict(number, id or default_id, features))
        self._ids.add(id or default_id)

    def _add_example(self, number: int, example: Example) -> None:
        id = example.id or ""
        if example.row is None and id not in self._ids and not self._waits(id):
            # a row that comes later in the batch does not count: another batch may end before it
            self.unknown.append(number)
            raise BadRowError(self._explain_missing(id))
        self._ids.add(id)  # a second label is a duplicate, not one of an unknown row
        self.examples[number] = example


def summarise_field(field: str | None) -> str | None:
    """Return what a log may say of an invalid value, which is not part of it."""
    return None if field is None else f"the value of {field!r:.40} is invalid"


def _key(message: Message) -> str:
    """Return a name of a message that is the same whenever it is read."""
    return f"{message.place}:{message.position}"
