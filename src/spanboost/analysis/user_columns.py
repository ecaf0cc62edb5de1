"""The column of the user's rows that each feature of a model belongs to.

A category of a dictionary ("sex=F") is a feature of its own, and a time has several features. Their
column is the key of the dictionary, or the column of the file or frame.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spanboost.models.model import Model
from spanboost.rows.feature_names import key_of
from spanboost.rows.times import cycle_of, part_names


def column_finder(model: Model, *, whole_times: bool = True) -> Callable[[Any], Any]:
    """Return a function from a feature to its column.

    whole_times: whether the features of a time, such as "sold.days", belong to its column; else
        to their part of it: "sold.hour_sin" and "sold.hour_cos" to "sold.hour".

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
        numbers = [column.name for column in schema.numbers]
        for column in schema.times:
            parts = part_names(column.name, schema.time_parts)
            numbers += [column.name if whole_times else cycle_of(part) for part in parts]
        codes = {2 * j + 1: column.name for j, column in enumerate(schema.categories)}
        return {2 * j: name for j, name in enumerate(numbers)} | codes
    if encoder.columns is not None:
        return {2 * j: name for j, name in enumerate(encoder.columns)}
    if encoder.names is None:
        return {}
    known = encoder.names.columns
    times = _features_of_times(known, encoder.names.time_parts, whole_times)
    return {2 * known[name]: times.get(name, key_of(name)) for name in known}


def _features_of_times(
    known: Mapping[str, int], parts: Sequence[str], whole_times: bool
) -> dict[str, str]:
    """Return the columns of the features, among the known ones, that are parts of a time."""
    suffix = f".{parts[0]}"
    keys = [name.removesuffix(suffix) for name in known if name.endswith(suffix)]
    each = {key: part_names(key, parts) for key in keys}
    return {
        part: key if whole_times else cycle_of(part)
        for key, names in each.items()
        if all(name in known for name in names)
        for part in names
    }
