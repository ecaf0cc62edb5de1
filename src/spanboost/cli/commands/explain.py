"""`spanboost explain`: print what each feature contributes to the predictions of a few rows."""

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from spanboost.analysis.explanation import Explanation
from spanboost.analysis.explanations import explain_many
from spanboost.cli.from_args import load_with_schema, stream_from_args
from spanboost.cli.row_filter import row_filter
from spanboost.data.stream import Stream
from spanboost.errors import DataError
from spanboost.losses import has_log_link
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
    fit = row_filter([model], stream.problems, learn=False)
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
    log_link = has_log_link(model.loss_)
    given = np.exp(explanation.prediction) if log_link else explanation.prediction
    (answer,) = prediction_table(model, np.array([given])).to_pylist()
    probability = answer.get(f"p_{answer['prediction']}")
    sure = "" if probability is None else f", {explanation.chance_name} {probability:z.4g}"
    predicted = answer["prediction"]
    shown = predicted if isinstance(predicted, str) else f"{predicted:z.6g}"
    yield f"{place}: prediction {shown}{sure}"
    if np.ndim(explanation.prediction):
        explanation = explanation.output(int(np.argmax(explanation.prediction)))
    base, *others = explanation.main_parts(top)
    size = max((abs(part.amount) for part in others), default=0.0)
    width = max(len(part.name) for part in (base, *others))
    yield f"  {base.amount:>+z12.6g}  {base.name}"
    for name, amount in others:
        bar = "#" * round(_BAR_WIDTH * abs(amount) / size) if size else ""
        yield f"  {amount:>+z12.6g}  {name:<{width}}  {bar}".rstrip()
    last = explanation.sum_name if probability is None else "score"
    yield f"  {explanation.prediction:>+z12.6g}  {last}"
