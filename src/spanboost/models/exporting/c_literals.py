"""Numbers, texts and tables as C."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from spanboost.compiling.arrays import Array

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
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in encoded(value))
    return f'"{"".join(plain)}"'


def encoded(value: str) -> bytes:
    """Return a string as the bytes that a program in C passes."""
    return value.encode(errors="surrogatepass")


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
