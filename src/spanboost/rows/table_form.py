"""The columns of a table by name, as programs that are not Python need them."""

from collections.abc import Sequence
from typing import NamedTuple


class Categories(NamedTuple):
    """A column of categories."""

    name: str
    texts: Sequence[str]  # the category of code 0, 1, ...; empty if they are hashed or unknown
    bits: int | None  # the code is the CRC-32 of the text, modulo 2^bits; None if it is not


class TableForm(NamedTuple):
    """The columns of the rows that a model reads: numbers, then codes of categories."""

    numbers: Sequence[str]
    categories: Sequence[Categories] = ()
    time_parts: Sequence[str] = ()  # the columns of numbers of a time; empty without times
