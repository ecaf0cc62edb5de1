"""Numbers, texts and tables as C."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import UserError

_LINE = 96
TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
}


def number(value: Any) -> str:
    """Return a number as a literal that the compiler reads back with the same bits."""
    single = isinstance(value, np.float32)
    x = float(value)
    if math.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    text = f"{x:.9g}" if single else repr(x)
    text = text if any(c in text for c in ".e") else f"{text}.0"
    return f"{text}f" if single else text


def text(value: str) -> str:
    """Return a string as a literal of plain ASCII."""
    quoted = escaped(value, b'"')
    return f'"{quoted}"'


def escaped(value: str, special: bytes = b"") -> str:
    """Return a string as plain ASCII in one line; octal numbers stand for all other bytes.

    special: bytes that are escaped, too. Question marks always are: they begin trigraphs.
    """
    each = encoded(value)
    special += b"\\?"
    return "".join(chr(b) if 32 <= b < 127 and b not in special else f"\\{b:03o}" for b in each)


def comment(lines: str) -> str:
    """Return lines of plain ASCII so that none of them can begin or end a comment."""
    return lines.replace("*/", "*\\057").replace("/*", "\\057*")


def encoded(value: str) -> bytes:
    """Return a string as the bytes that a program in C passes."""
    return value.encode(errors="surrogatepass")


def check_texts(what: str, texts: Iterable[str]) -> None:
    """Raise a UserError if a string of C cannot hold one of the texts."""
    for one in texts:
        if "\0" in one:
            raise UserError(
                f"cannot export the {what} {one!r:.60} to C, where the character NUL ends a text; "
                "rename it in the data and train again, or export to ONNX"
            )


def table(name: str, values: Array) -> str:
    """Return the definition of a constant array; it has one element if there are no values."""
    flat = np.ravel(values)
    head = f"static const {TYPES[flat.dtype.name]} {name}[{max(flat.size, 1)}] = {{"
    return f"{head}\n{_lines(_items(flat) if flat.size else ['0'])}}};\n"


def records(head: str, *fields: Array) -> str:
    """Return the definition of a constant array of structures, given the values of each field."""
    items = (f"{{{','.join(each)}}}" for each in zip(*map(_items, fields), strict=True))
    return f"{head}[{len(fields[0])}] = {{\n{_lines(items)}}};\n"


def _items(values: Array) -> Iterable[str]:
    """Return numbers as literals."""
    return map(number, values) if values.dtype.kind == "f" else map(str, values.tolist())


def _lines(items: Iterable[str]) -> str:
    """Return the items, separated by commas, in lines of limited length."""
    lines, line = [], ""
    for item in items:
        if len(line) + len(item) > _LINE:
            lines.append(line)
            line = ""
        line += f"{item},"
    return "\n".join([*lines, line]) + "\n"
