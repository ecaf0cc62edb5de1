"""`spanboost explain`: print what each feature contributes to the predictions of a few rows."""

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from spanboost.analysis.explanations import Explanation, explain_many
from spanboost.cli.from_args import load_with_schema, stream_from_args
from spanboost.cli.row_filter import row_filter
from spanboost.data.stream import Stream
from spanboost.errors import DataError
from spanboost.models.model import Model
from spanboost.models.predictions import prediction_table

_BAR_WIDTH = 30


def explain(args: Namespace) -> int:
    """Print an explanation for each of the first rows."""
    model = load_with_schema(args.model)
    for file, line, explanation in _explanations(model, stream_from_args(args), args.rows):
        if args.json:
            row = {"file": file, "line": line, **_as_json(explanation)}
            print(json.dumps(row, allow_nan=False))
        else:
            print("\n".join(_describe(model, f"{file}:{line}", explanation, args.top)))
    return 0


def _explanations(
    model: Model, stream: Stream, rows: int
) -> Iterator[tuple[str, int, Explanation]]:
    """Yield the file, line and explanation of each of the first rows."""
    fit = row_filter([model], stream.problems)
    with closing(stream.batches(model.schema, labelled=False, filter_rows=fit)) as batches:
        for batch in batches:
            first = batch.part(0, min(rows, batch.rows))
            try:
                for line, explanation in zip(
                    first.lines, explain_many(model, first.X), strict=True
                ):
                    yield first.file, int(line), explanation
            except DataError as error:
                raise batch.locate(error) from None
            rows -= first.rows
            if rows == 0:
                return


def _as_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON types."""

    def plain(part: Any) -> Any:
        return part.tolist() if isinstance(part, np.ndarray) else part

    contributions = {str(name): plain(part) for name, part in explanation.contributions.items()}
    rest = {
        name: plain(part) for name, part in explanation._asdict().items() if name != "contributions"
    }
    return rest | {"contributions": contributions}


def _describe(model: Model, place: str, explanation: Explanation, top: int) -> Iterator[str]:
    """Yield an explanation as lines of text; for classes, it explains the most likely one."""
    (answer,) = prediction_table(model, np.array([explanation.prediction])).to_pylist()
    probability = answer.get(f"p_{answer['prediction']}")
    sure = "" if probability is None else f", probability {probability:.4g}"
    predicted = answer["prediction"]
    shown = predicted if isinstance(predicted, str) else f"{predicted:.6g}"
    yield f"{place}: prediction {shown}{sure}"
    best = int(np.argmax(explanation.prediction)) if np.ndim(explanation.prediction) else None

    def amount(part: Any) -> float:
        return float(part if best is None else part[best])

    parts = [(amount(part), str(name)) for name, part in explanation.contributions.items()]
    parts.sort(key=lambda part: -abs(part[0]))
    lines = [(amount(explanation.base), "(base)"), *parts[:top]]
    if parts[top:]:
        lines.append((sum(part for part, _ in parts[top:]), f"({len(parts[top:]):,} more)"))
    size = max(abs(part) for part, _ in lines[1:]) if parts else 0.0
    if abs(amount(explanation.rest)) > 1e-5 * max(size, abs(amount(explanation.base))):
        lines.append((amount(explanation.rest), "(rest)"))
    width = max(len(name) for _, name in lines)
    for k, (part, name) in enumerate(lines):
        bar = "#" * round(_BAR_WIDTH * abs(part) / size) if k and size else ""
        yield f"  {part:>+12.6g}  {name:<{width}}  {bar}".rstrip()
    last = "prediction" if probability is None else "score"
    yield f"  {amount(explanation.prediction):>+12.6g}  {last}"
