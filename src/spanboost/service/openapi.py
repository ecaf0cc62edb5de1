"""What can be asked of the service: its OpenAPI description."""

from typing import Any

from spanboost import __version__
from spanboost.service.middleware import Limits
from spanboost.service.request_bodies import ARROW, JSON, LINES
from spanboost.service.request_rows import LONGEST_ID, RowReader

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 0}
_ON_ERROR = {
    "name": "on_error",
    "in": "query",
    "description": "a bad row: `stop` refuses the whole request (default), `skip` only that row",
    "schema": {"type": "string", "enum": ["stop", "skip"]},
}
_KEEP = {
    "name": "keep",
    "in": "query",
    "description": "`false`: no label will come, so the rows need not be kept, nor have ids",
    "schema": {"type": "string", "enum": ["true", "false"]},
}


def description(reader: RowReader, limits: Limits) -> dict[str, Any]:
    """OpenAPI 3.1, for the names of this model."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "spanboost",
            "version": __version__,
            "description": "A learning service: predict now, label later, lose nothing.",
        },
        "paths": {
            "/predict": {"post": _predict()},
            "/learn": {"post": _learn()},
            "/model": {"get": _get("The model as a .sb file", "application/octet-stream", {})},
            "/healthz": {"get": _get("Whether the process answers", JSON, _ref("Status"))},
            "/readyz": {
                "get": _get(
                    "Whether it predicts and learns", JSON, _ref("Status"), {"503": "not now"}
                )
            },
            "/metrics": {"get": _get("Figures for Prometheus", "text/plain", _TEXT)},
            "/openapi.json": {"get": _get("This description", JSON, {"type": "object"})},
        },
        "components": {
            "schemas": _schemas(reader, limits),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _schemas(reader: RowReader, limits: Limits) -> dict[str, Any]:
    value = {"type": ["number", "string", "boolean", "null"]}
    id = {
        "oneOf": [
            {"type": "string", "minLength": 1, "maxLength": LONGEST_ID},
            {"type": "integer"},
            {"type": "null"},
        ],
        "description": "chosen by you: a label is learned once for each",
    }
    row = {
        "type": "object",
        "description": "features by name: numbers, strings (categories) or null (missing)",
        "properties": {reader.id: id},
        "additionalProperties": value,
        "maxProperties": limits.width,
    }
    labelled = row | {
        "properties": {
            reader.id: id,
            reader.label: {"type": ["number", "string", "boolean"]},
        },
        "required": [reader.label],
        "description": f"a row with its {reader.label!r}; or only that and the "
        f"{reader.id!r} of a row that was predicted",
    }
    several = {"type": "array", "maxItems": limits.rows}
    problem = {
        "type": "object",
        "properties": {"row": _WHOLE, "field": {"type": ["string", "null"]}, "reason": _TEXT},
    }
    return {
        "Row": row,
        "Labelled": labelled,
        "Rows": {"oneOf": [_ref("Row"), several | {"items": _ref("Row")}]},
        "LabelledRows": {"oneOf": [_ref("Labelled"), several | {"items": _ref("Labelled")}]},
        "Predictions": {
            "type": "object",
            "description": "of one row: its values; of several: a list of each",
            "required": ["prediction"],
        },
        "Outcome": {
            "type": "object",
            "properties": {
                "learned": _WHOLE,
                "duplicates": _WHOLE,
                "problems": {"type": "array", "items": problem},
            },
            "required": ["learned", "duplicates", "problems"],
        },
        "Error": {
            "type": "object",
            "properties": {"error": _TEXT, "problems": {"type": "array", "items": problem}},
            "required": ["error"],
        },
        "Status": {"type": "object", "properties": {"status": _TEXT}},
    }


def _predict() -> dict[str, Any]:
    return {
        "summary": "Predict rows, each with an id for its label",
        "parameters": [_ON_ERROR, _KEEP],
        "requestBody": _body("Rows"),
        "responses": {
            "200": {
                "description": "predictions, in the form in which rows were sent",
                "content": {JSON: {"schema": _ref("Predictions")}, LINES: {}, ARROW: {}},
            },
            **_errors(),
        },
    }


def _learn() -> dict[str, Any]:
    gone = {"410": _error("no row waits under an id: it is unknown, or expired")}
    return {
        "summary": "Learn labelled rows, or labels of rows that were predicted",
        "parameters": [_ON_ERROR],
        "requestBody": _body("LabelledRows"),
        "responses": {
            "200": {
                "description": "they are in the journal, and learned whatever happens",
                "content": {JSON: {"schema": _ref("Outcome")}},
            },
            **_errors(),
            **gone,
        },
    }


def _body(name: str) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": _ref(name)}, LINES: {}, ARROW: {}}}


def _errors() -> dict[str, Any]:
    words = {
        "400": "a body that holds no rows",
        "401": "the token is missing, or another one",
        "408": "the body did not arrive in time",
        "413": "the body is too long",
        "415": "the body is of another kind",
        "422": "a row is bad: which, which field, and why; nothing was done",
        "429": "too many rows are waiting: Retry-After",
        "503": "too many requests are open, or the disk fails: Retry-After",
    }
    return {status: _error(text) for status, text in words.items()}


def _error(text: str) -> dict[str, Any]:
    return {"description": text, "content": {JSON: {"schema": _ref("Error")}}}


def _get(
    summary: str, kind: str, schema: Any, more: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {
            "200": {"description": summary, "content": {kind: {"schema": schema}}},
            "401": _error("the token is missing, or another one"),
            **{status: _error(text) for status, text in (more or {}).items()},
        },
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
