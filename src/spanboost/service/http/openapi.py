"""The OpenAPI description of the service."""

from typing import Any

from spanboost import __version__
from spanboost.service.http.request_bodies import ARROW, JSON, JSON_LINES
from spanboost.service.http.unknown_texts import NOTE_HEADER
from spanboost.service.limits import RequestLimits
from spanboost.service.request_rows import MAX_ID_LENGTH, RowParser

_STRING = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_BYTES = "application/octet-stream"
_INVALID_TOKEN = "Missing or invalid token."
_ON_ERROR = {
    "name": "on_error",
    "in": "query",
    "description": "How to treat a bad row: `stop` refuses the whole request (default), `skip` "
    "skips only that row.",
    "schema": {"type": "string", "enum": ["stop", "skip"]},
}
_KEEP = {
    "name": "keep",
    "in": "query",
    "description": "Whether to store the rows until their labels arrive (default: `true`). With "
    "`false`, the response has no ids.",
    "schema": {"type": "string", "enum": ["true", "false"]},
}
_COVERAGE = {
    "in": "query",
    "schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
}
_INTERVALS = [
    _COVERAGE
    | {
        "name": "interval",
        "description": "Coverage of prediction intervals, such as 0.9. The response then has the "
        "columns `low` and `high`; an infinite end is null. The service needs --intervals.",
    },
    *(
        _COVERAGE
        | {
            "name": side,
            "description": f"Coverage of intervals with one end: this share of the labels is at or "
            f"{where} it. The response then has the column `{side}`; an infinite end is null. The "
            "service needs --intervals.",
        }
        for side, where in (("lower", "above"), ("upper", "below"))
    ),
]
_WAIT = {
    "name": "wait",
    "in": "query",
    "description": "When to respond: with `true`, after the rows are learned, so that the next "
    "prediction uses them; with `false`, when they are in the journal (default).",
    "schema": {"type": "string", "enum": ["true", "false"]},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Up to 64 letters, digits and `._:/+=-` of your choice. Requests with the same "
    "key are executed once; the others get the same answer.",
    "schema": {"type": "string", "maxLength": 64},
}

_CHANGES = {  # paths that change a version: what they do, and what they return
    "pin": ("Keep a version until it is unpinned", "Versions"),
    "unpin": ("Let a version be deleted when it is old enough", "Versions"),
    "rollback": ("Replace the model by the one of a version", "RolledBack"),
}


def describe_api(parser: RowParser, limits: RequestLimits, prefix: str = "") -> dict[str, Any]:
    """Return the OpenAPI 3.1 description, with the id and label keys of this service.

    prefix: the beginning of all paths, without a slash at its end.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "spanboost",
            "version": __version__,
            "description": "Predicts rows, and learns from their labels when they arrive.",
        },
        "servers": [{"url": prefix or "/"}],
        "paths": {
            "/predict": {"post": _predict()},
            "/learn": {"post": _learn()},
            "/model": {"get": _get("Download the model as a .sb file", _BYTES, {})},
            "/backup": {
                "get": _get(
                    "Download a backup of the state folder as a tar archive",
                    "application/x-tar",
                    {},
                    {"503": "Another backup is being sent, or the disk fails; retry later."},
                )
            },
            "/journal": {"get": _journal()},
            "/snapshot": {"get": _get("Download the last snapshot, for followers", _BYTES, {})},
            "/healthz": {"get": _get("Check that the process responds", JSON, _ref("Status"))},
            "/readyz": {
                "get": _get(
                    "Check that the service can predict and learn",
                    JSON,
                    _ref("Status"),
                    {"503": "The service cannot predict or learn; retry later."},
                )
            },
            "/metrics": {"get": _get("Get metrics for Prometheus", "text/plain", _STRING)},
            "/versions": {"get": _get("List the versions of the model", JSON, _ref("Versions"))},
            **{f"/versions/{{number}}/{name}": _change_version(name) for name in _CHANGES},
            "/challenger": {
                "get": _get("Compare the model with its challenger", JSON, {"type": "object"}),
                "post": _begin_challenge(),
                "delete": _end_challenge("End the challenge"),
            },
            "/challenger/promote": {"post": _end_challenge("Replace the model by the challenger")},
            "/openapi.json": {"get": _get("Get this description", JSON, {"type": "object"})},
        },
        "components": {
            "schemas": _schemas(parser, limits),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _schemas(parser: RowParser, limits: RequestLimits) -> dict[str, Any]:
    return {
        **_row_schemas(parser, limits),
        **_answer_schemas(),
        **_version_schemas(),
        "Status": _object(
            {"status": _STRING, "checks": {"type": "object", "additionalProperties": _STRING}},
            ["status"],
        ),
    }


def _row_schemas(parser: RowParser, limits: RequestLimits) -> dict[str, Any]:
    """Return the schemas of what clients send."""
    value = {"type": ["number", "string", "boolean", "null"]}
    id = {
        "oneOf": [
            {"type": "string", "minLength": 1, "maxLength": MAX_ID_LENGTH},
            {"type": "integer"},
            {"type": "null"},
        ],
        "description": "An id of your choice. The service learns each id only once.",
    }
    row = {
        "type": "object",
        "description": "Features by name: numbers, strings (categories, or dates and times in ISO "
        "8601) or null (missing).",
        "properties": {parser.id: id},
        "additionalProperties": value,
        "maxProperties": limits.row_keys,
    }
    labelled = row | {
        "properties": {
            parser.id: id,
            parser.label: {"type": ["number", "string", "boolean"]},
        },
        "required": [parser.label],
        "description": f"A row with its {parser.label!r}; or only the {parser.id!r} of a predicted "
        f"row and its {parser.label!r}.",
    }
    several = {"type": "array", "maxItems": limits.rows}
    return {
        "Row": row,
        "Labelled": labelled,
        "Rows": {"oneOf": [_ref("Row"), several | {"items": _ref("Row")}]},
        "LabelledRows": {"oneOf": [_ref("Labelled"), several | {"items": _ref("Labelled")}]},
    }


def _answer_schemas() -> dict[str, Any]:
    """Return the schemas of predictions, of outcomes and of errors."""
    problem = {
        "type": "object",
        "properties": {"row": _COUNT, "field": {"type": ["string", "null"]}, "reason": _STRING},
    }
    problems = {"type": "array", "items": problem}
    queued = _COUNT | {"description": "Rows that are in the journal, but perhaps not learned yet."}
    outcome = {"learned": _COUNT, "duplicates": _COUNT, "problems": problems, "queued": queued}
    return {
        "Predictions": {
            "type": "object",
            "description": "Single values for a request with one row; lists for a list of rows.",
            "required": ["prediction"],
        },
        "Outcome": _object(outcome, list(outcome)),
        "Error": _object({"error": _STRING, "problems": problems}, ["error"]),
    }


def _version_schemas() -> dict[str, Any]:
    """Return the schemas of versions, and of the records that change the model."""
    versions = {"versions": {"type": "array", "items": _version()}}
    rolled_back = {"version": _COUNT, "record": _COUNT}
    return {
        "Versions": _object(versions, ["versions"]),
        "Record": _object({"record": _COUNT}, ["record"]),
        "RolledBack": _object(rolled_back, list(rolled_back)),
    }


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _predict() -> dict[str, Any]:
    return {
        "summary": "Predict rows; the response has an id for each row",
        "parameters": [_ON_ERROR, _KEEP, *_INTERVALS],
        "requestBody": _body("Rows"),
        "responses": {
            "200": {
                "description": "Predictions, in the format of the request.",
                "headers": {
                    NOTE_HEADER: {
                        "description": "A text of a row that the model has not learned, although "
                        "its key has had numbers.",
                        "schema": _STRING,
                    }
                },
                "content": {JSON: {"schema": _ref("Predictions")}, JSON_LINES: {}, ARROW: {}},
            },
            **_errors(),
            "409": _error("Another row waits for its label under this id, or this is a follower."),
        },
    }


def _learn() -> dict[str, Any]:
    gone = {"410": _error("No pending row with this id: it is unknown or has expired.")}
    return {
        "summary": "Learn from labelled rows, or from labels of predicted rows",
        "parameters": [_ON_ERROR, _WAIT],
        "requestBody": _body("LabelledRows"),
        "responses": {
            "200": {
                "description": "The rows are in the journal, and are learned even after a crash.",
                "content": {JSON: {"schema": _ref("Outcome")}},
            },
            **_errors(),
            "409": _error(
                "Another label was learned for this id; or this server is a follower, and labels "
                "go to the leader."
            ),
            **gone,
        },
    }


def _version() -> dict[str, Any]:
    loss = {"type": ["number", "null"]}
    return {
        "type": "object",
        "properties": {
            "version": _COUNT | {"description": "Number of the last journal record it learned."},
            "time": {"type": "number", "description": "When it was written, in Unix seconds."},
            "rows": _COUNT | {"description": "Rows learned since the folder was created."},
            "loss": loss | {"description": "Average loss of all these rows."},
            "recent_loss": loss | {"description": "Average loss since the version before."},
            "pinned": {"type": "boolean"},
        },
    }


def _change_version(name: str) -> dict[str, Any]:
    summary, schema = _CHANGES[name]
    number = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer"}}
    errors = {"404": "There is no version with this number."}
    parameters = [number, _KEY] if name == "rollback" else [number]
    return {"post": _get(summary, JSON, _ref(schema), errors) | {"parameters": parameters}}


def _journal() -> dict[str, Any]:
    errors = {
        "409": "The journal does not continue at this position.",
        "422": "A query parameter is bad.",
        "503": "The journal cannot be read now; retry later.",
    }
    described = {
        "from": "Number of the first record (default: the oldest one); needs `mark`.",
        "mark": "Mark of the journal file that contains the record before.",
        "check": "Checksum of the record before.",
    }
    parameters = [
        {"name": name, "in": "query", "description": text, "schema": _STRING}
        for name, text in described.items()
    ]
    summary = "Get journal records, for followers; waits some seconds for the next one"
    return _get(summary, _BYTES, {}, errors) | {"parameters": parameters}


def _begin_challenge() -> dict[str, Any]:
    errors = {
        "400": "Unknown rule of promotion or query parameter.",
        "409": "There is a challenger already.",
        "413": "The body is too large.",
        "415": "Unsupported content type.",
        "422": "The body is not a model, or its model cannot be compared; `error` says why.",
    }
    rule = {
        "name": "promote",
        "in": "query",
        "description": "When the challenger replaces the model: `by-hand` (default), or "
        "`when-better` as soon as the interval of the difference of the losses says so.",
        "schema": {"type": "string", "enum": ["by-hand", "when-better"]},
    }
    content = {JSON: {"schema": {"type": "object"}}, "application/octet-stream": {}}
    begin = _get("Let another model learn the same rows", JSON, _ref("Record"), errors)
    return begin | {
        "parameters": [rule, _KEY],
        "requestBody": {"required": True, "content": content},
    }


def _end_challenge(summary: str) -> dict[str, Any]:
    end = _get(summary, JSON, _ref("Record"), {"409": "There is no challenger."})
    return end | {"parameters": [_KEY]}


def _body(name: str) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": _ref(name)}, JSON_LINES: {}, ARROW: {}}}


def _errors() -> dict[str, Any]:
    descriptions = {
        "400": "The body is not valid JSON or not a valid Arrow stream, or has too many rows; or a "
        "query parameter is unknown.",
        "401": _INVALID_TOKEN,
        "408": "The body did not arrive in time.",
        "413": "The body is too large, or its rows would take too much memory.",
        "415": "Unsupported content type or content encoding.",
        "422": "A row is bad, so nothing was done; `problems` lists the row, the field and the "
        "reason.",
        "429": "Too many rows are waiting, or too many requests had a wrong token; retry after "
        "the time in `Retry-After`.",
        "503": "The server is starting or stopping, too many requests are open, or the disk fails; "
        "retry after the time in `Retry-After`.",
    }
    return {status: _error(description) for status, description in descriptions.items()}


def _error(description: str) -> dict[str, Any]:
    return {"description": description, "content": {JSON: {"schema": _ref("Error")}}}


def _get(
    summary: str, media_type: str, schema: Any, errors: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {
            "200": {"description": f"{summary}.", "content": {media_type: {"schema": schema}}},
            "400": _error("A query parameter is unknown."),
            "401": _error(_INVALID_TOKEN),
            **{status: _error(description) for status, description in (errors or {}).items()},
        },
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
