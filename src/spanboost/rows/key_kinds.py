"""Numbers and texts that are numbers, such as "0.35", under the same key of dictionaries.

A text is a category, also if it is a number. But if a key has had numbers so far, such a text is a
mistake of the program that wrote the row, and so is a number if the texts of the key were numbers.
Such a row is refused. Other texts may share a key with numbers: a sensor can report 21.5 or
"broken". Missing values say nothing about a key.
"""

import re
from collections.abc import Container
from typing import Any

from spanboost.errors import ModelFileError

_NUMERAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_CODE = re.compile(r"\s*[+-]?0\d", re.ASCII)  # a leading zero, as in a postal code
_MANY = 20  # texts of whole numbers from which on a key seems to have quantities


def is_numeral(text: str) -> bool:
    """Return whether a text is a number: digits, with or without a point and an exponent."""
    return _NUMERAL.fullmatch(text) is not None


def is_quantity(text: str) -> bool:
    """Return whether a text is a number without a leading zero, which codes such as 007 have."""
    return is_numeral(text) and not _CODE.match(text)


class NewNames(dict[str, int]):
    """The columns of names that are not known yet, and what rows show about their keys.

    blank: new names without a number so far.
    filled: known names that get their first number.
    numerals: keys that get their first text that is a number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blank: set[str] = set()
        self.filled: set[str] = set()
        self.numerals: set[str] = set()

    def __bool__(self) -> bool:
        return len(self) > 0 or len(self.filled) > 0 or len(self.numerals) > 0


class KeyKinds:
    """What is known about the keys of the rows so far.

    blank: names that have been missing in all rows.
    numerals: keys with a text that is a number.
    """

    def __init__(self) -> None:
        self.blank: set[str] = set()
        self.numerals: set[str] = set()

    def watch(self, key: str, value: Any, known: Container[str], new: NewNames) -> str | None:
        """Note in `new` what a value shows about its key; return why it is a mistake, or None.

        known: the names of the rows learned so far. Call it before the value is added to `new`.
        """
        if "=" in key:  # the name of a category of another key can look like this key
            return None
        if isinstance(value, str):
            return self._watch_text(key, value, known, new)
        if value is None or value != value:  # noqa: PLR0124 - NaN differs from itself
            if key not in known and key not in new:
                new.blank.add(key)
            return None
        if self._has_numbers(key, known, new):
            return None
        if key in self.numerals or key in new.numerals:
            what = f"{key!r:.40} is the number {value!r:.40}, but was text before"
            return f"{what}; convert it to text, as in the rows before"
        new.blank.discard(key)
        if key in known:
            new.filled.add(key)
        return None

    def _watch_text(self, key: str, text: str, known: Container[str], new: NewNames) -> str | None:
        if not is_numeral(text):
            return None
        if self._has_numbers(key, known, new):
            what = f"{key!r:.40} is the text {text!r:.40}, but was a number before"
            return f"{what}; convert it to a number"
        if key not in self.numerals:
            new.numerals.add(key)
        return None

    def _has_numbers(self, key: str, known: Container[str], new: NewNames) -> bool:
        if key in known:
            return key not in self.blank or key in new.filled
        return key in new and key not in new.blank

    def add(self, new: NewNames) -> None:
        """Add what rows have shown, once they are about to be learned."""
        self.blank |= new.blank
        self.blank -= new.filled
        self.numerals |= new.numerals

    def state(self) -> dict[str, list[str]]:
        """Return what is known as JSON."""
        return {"blank": sorted(self.blank), "numerals": sorted(self.numerals)}

    def restore(self, state: Any) -> None:
        """Set what is known to what `state` returned; a ModelFileError if it is invalid."""
        try:
            blank, numerals = state["blank"], state["numerals"]
            valid = all(isinstance(name, str) for name in [*blank, *numerals])
        except (KeyError, TypeError):
            valid = False
        if not valid:
            raise ModelFileError("the description of the keys of rows is invalid")
        self.blank, self.numerals = set(blank), set(numerals)


class NumeralWarnings:
    """Finds keys whose texts seem to be quantities, to warn about each of them once.

    remedy: what to do about such a key.
    """

    def __init__(self, remedy: str = "convert them to numbers, for example with float()") -> None:
        self._remedy = remedy
        self._numbers: dict[str, int] = {}  # new texts that are numbers, by key

    def find(self, key: str, text: str) -> str | None:
        """Return a warning about a new text of a key; None if there is nothing to say."""
        if not is_quantity(text):
            return None
        before = self._numbers.get(key, 0)
        whole = text.strip().lstrip("+-").isdecimal()
        after = self._numbers[key] = before + (1 if whole else _MANY)
        if not before < _MANY <= after:
            return None
        return (
            f"texts like {text!r:.40} of {key!r:.40} are numbers, but each of them is a category "
            f"of its own; {self._remedy}"
        )
