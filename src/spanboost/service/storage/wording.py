"""Numbers in sentences: of records, and of things that are counted."""

from collections.abc import Iterable, Sized


def number_ranges(numbers: Iterable[int]) -> str:
    """Return sorted numbers as text.

    >>> number_ranges([1, 2, 3, 7, 9, 10])
    '1 to 3, 7, 9 to 10'
    """
    ranges = list[list[int]]()
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a} to {b}" if a < b else str(a) for a, b in ranges)


def name_records(numbers: Iterable[int], noun: str = "record") -> str:
    """Return a noun and sorted numbers.

    >>> name_records([7]), name_records([7, 8], "snapshot")
    ('record 7', 'snapshots 7 to 8')
    """
    text = number_ranges(numbers)
    return f"{noun} {text}" if text.isdecimal() else f"{noun}s {text}"


def count(things: Sized | int, noun: str) -> str:
    """Return a number and a noun.

    >>> count(1, "byte"), count("abc", "record")
    ('1 byte', '3 records')
    """
    number = things if isinstance(things, int) else len(things)
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
