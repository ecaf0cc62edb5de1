"""`spanboost explain`: what each feature contributes to the predictions of a few rows."""

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from spanboost.analysis.explanations import Explanation, explain_many
from spanboost.cli.options import load_with_schema, stream_from_args
from spanboost.cli.row_filter import row_filter
from spanboost.data.stream import Stream
from spanboost.errors import DataError
from spanboost.models.model import Model
from spanboost.models.predictions import prediction_table

_WIDTH = 30  # of bars


def explain(args: Namespace) -> int:
    """Print an explanation of each of the first rows."""
    model = load_with_schema(args.model)
    for file, line, found in _explanations(model, stream_from_args(args), args.rows):
        if args.json:
            given = {"file": file, "line": line, **_spelt(found)}
            print(json.dumps(given, allow_nan=False))
        else:
            print("\n".join(_shown(model, f"{file}:{line}", found, args.top)))
    return 0


def _explanations(
    model: Model, stream: Stream, rows: int
) -> Iterator[tuple[str, int, Explanation]]:
    """Of the first rows, with the places they stand at."""
    fit = row_filter([model], stream.problems)
    with closing(stream.batches(model.schema, labelled=False, filter_rows=fit)) as batches:
        for batch in batches:
            asked = batch.part(0, min(rows, batch.rows))
            try:
                for line, found in zip(asked.lines, explain_many(model, asked.X), strict=True):
                    yield asked.file, int(line), found
            except DataError as error:
                raise batch.locate(error) from None
            rows -= asked.rows
            if rows == 0:
                return


def _spelt(found: Explanation) -> dict[str, Any]:
    """In terms of JSON."""

    def plain(part: Any) -> Any:
        return part.tolist() if isinstance(part, np.ndarray) else part

    contributions = {str(name): plain(part) for name, part in found.contributions.items()}
    given = {name: plain(part) for name, part in found._asdict().items() if name != "contributions"}
    return given | {"contributions": contributions}


def _shown(model: Model, place: str, found: Explanation, top: int) -> Iterator[str]:
    """For people; of classes, the score of the likeliest one."""
    (answer,) = prediction_table(model, np.array([found.prediction])).to_pylist()
    probability = answer.get("probability", answer.get(f"probability_{answer['prediction']}"))
    sure = "" if probability is None else f", probability {probability:.4g}"
    said = answer["prediction"]
    yield f"{place}: prediction {said if isinstance(said, str) else f'{said:.6g}'}{sure}"
    best = int(np.argmax(found.prediction)) if np.ndim(found.prediction) else None

    def amount(part: Any) -> float:
        return float(part if best is None else part[best])

    parts = [(amount(part), str(name)) for name, part in found.contributions.items()]
    parts.sort(key=lambda part: -abs(part[0]))
    lines = [(amount(found.base), "(base)"), *parts[:top]]
    if parts[top:]:
        lines.append((sum(part for part, _ in parts[top:]), f"({len(parts[top:]):,} more)"))
    size = max(abs(part) for part, _ in lines[1:]) if parts else 0.0
    if abs(amount(found.rest)) > 1e-5 * max(size, abs(amount(found.base))):
        lines.append((amount(found.rest), "(rest)"))
    width = max(len(name) for _, name in lines)
    for k, (part, name) in enumerate(lines):
        bar = "#" * round(_WIDTH * abs(part) / size) if k and size else ""
        yield f"  {part:>+12.6g}  {name:<{width}}  {bar}".rstrip()
    last = "prediction" if probability is None else "score"
    yield f"  {amount(found.prediction):>+12.6g}  {last}"
