"""The column of the user's rows that each feature of a model belongs to.

A category of a dictionary ("sex=F") is a feature of its own, and a time has four features. Their
column is the key of the dictionary, or the column of the file or frame.
"""

from collections.abc import Callable, Container
from typing import Any

from spanboost.models.model import Model
from spanboost.rows.times import PARTS, part_names


def column_finder(model: Model, *, whole_times: bool = True) -> Callable[[Any], Any]:
    """Return a function from a feature to its column.

    whole_times: whether the features of a time, such as "sold.hour", belong to its column; else
        each has its own name.

    Features have numbers as in `Cells` of rows/block.py. Columns have names, or numbers if they
    have no names; "code j" is column j of the category codes.
    """
    names = _column_names(model, whole_times)
    return lambda feature: names.get(feature, feature_name(feature))


def feature_name(feature: Any) -> Any:
    """Return a feature as users see it: its column, or "code j"; a key is its own name."""
    if not isinstance(feature, int):
        return feature
    return f"code {feature // 2}" if feature % 2 else feature // 2


def _column_names(model: Model, whole_times: bool) -> dict[Any, str]:
    """Return the names of columns by feature."""
    schema, encoder = model.schema, model.encoder
    if schema is not None and schema.columns is not None:
        numbers = list(schema.number_names)
        if whole_times:
            numbers = [column.name for column in schema.numbers]
            numbers += [column.name for column in schema.times for _ in PARTS]
        codes = {2 * j + 1: column.name for j, column in enumerate(schema.categories)}
        return {2 * j: name for j, name in enumerate(numbers)} | codes
    if encoder.columns is not None:
        return {2 * j: name for j, name in enumerate(encoder.columns)}
    known = {} if encoder.names is None else encoder.names.columns
    times = known if whole_times else ()
    return {2 * column: key_of(name, times) for name, column in known.items()}


def key_of(name: str, known: Container[str] = ()) -> str:
    """Return the key of dictionaries for the name of a feature.

    known: names of features; if all parts of a time are there, their key is that of the time.
    """
    key, equals, _ = name.partition("=")
    if equals and key:
        return key
    base, _, part = name.rpartition(".")
    times = part in PARTS and all(one in known for one in part_names(base))
    return base if times else name
