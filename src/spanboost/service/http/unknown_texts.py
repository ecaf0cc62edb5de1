"""Texts in rows to predict, under keys that have had numbers: they count as missing values."""

from collections.abc import Iterator, Sequence

from spanboost.models.model import Model
from spanboost.rows.column_rows import ColumnRows
from spanboost.service.request_rows import Row

NOTE_HEADER = "Spanboost-Note"


def find_unknown_texts(model: Model, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the key and the text of values that the model has not learned, of keys of numbers.

    A model of a table refuses such rows, so it has none.
    """
    names = model.encoder.names
    if names is None or model.schema.columns is not None:
        return []
    return [(key, text) for key, text in _texts(rows) if names.is_unknown_text(key, text)]


def describe_unknown_texts(found: Sequence[tuple[str, str]]) -> str:
    """Return a note about these texts, in ASCII, as a header of a response holds it."""
    key, text = found[0]
    more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    what = f"{key!a:.40} is the text {text!a:.40}, but was a number before{more}"
    return f"{what}; the model has not learned this text, so the value counts as missing"


def _texts(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    if isinstance(rows, ColumnRows):
        for key, texts in rows.texts.items():
            yield from ((key, text) for text in texts)
        return
    for row in rows:
        yield from ((key, value) for key, value in row.items() if type(value) is str)
