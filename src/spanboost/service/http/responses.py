"""The bodies of responses: predictions in the format of the request, and rejected rows."""

from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from spanboost.service.http.request_bodies import ARROW, JSON_LINES
from spanboost.service.request_rows import RejectedRow


class ParsedRequest(NamedTuple):
    """The rows of a request, the rejected ones, and the format of the request."""

    rows: Any  # FeatureRows or Examples
    rejected: list[RejectedRow]
    media_type: str
    single: bool  # whether the body is one object, so that the response is one, too


def describe_problem(rejected: RejectedRow) -> dict[str, Any]:
    """Return a rejected row as clients see it."""
    return {"row": rejected.row, "field": rejected.field, "reason": rejected.reason}


def format_predictions(
    request: ParsedRequest, columns: dict[str, list[Any]], *, with_problems: bool
) -> Response:
    """Return predictions in the format of the request, with the rejected rows if asked."""
    problems = [describe_problem(row) for row in request.rejected] if with_problems else None
    if request.media_type == ARROW:
        return Response(_encode_arrow(columns, problems), media_type=ARROW)
    if request.media_type == JSON_LINES:
        names = list(columns)
        rows = [
            dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)
        ]
        lines = [
            orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            for row in [*rows, *(problems or [])]
        ]
        return Response(b"".join(lines), media_type=JSON_LINES)
    result: dict[str, Any] = dict(columns)
    if request.single and columns["prediction"]:
        result = {name: values[0] for name, values in columns.items()}
    if problems is not None:
        result |= {"problems": problems}
    return Response(orjson.dumps(result), media_type="application/json")


def _encode_arrow(columns: dict[str, list[Any]], problems: list[Any] | None) -> bytes:
    import pyarrow as pa

    table = pa.table(columns)
    if problems is not None:
        table = table.replace_schema_metadata({"problems": orjson.dumps(problems)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
