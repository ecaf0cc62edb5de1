"""Compare the output of a command with recorded output.

Numbers may differ a little, and `...` matches anything.
"""

import re

NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?%?")
TOLERANCE = 0.02


def line_matches(expected, printed):
    """Return whether a printed line matches the expected one, numbers within a tolerance."""
    parts = [re.escape(part) for part in re.split(r"\.\.\.", expected)]
    if len(parts) > 1:
        return re.fullmatch(".*".join(parts), printed) is not None
    if NUMBER.sub("#", expected).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True)
    return all(is_close(*map(parse_number, pair)) for pair in pairs)


def parse_number(text):
    return float(text.replace(",", "").rstrip("%"))


def is_close(a, b):
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) + 1e-4


def lines_match(expected, printed):
    """Return whether printed lines match; a line `...` matches any number of lines."""
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(lines_match(expected[1:], printed[k:]) for k in range(len(printed) + 1))
    return (
        bool(printed)
        and line_matches(expected[0], printed[0])
        and lines_match(expected[1:], printed[1:])
    )


def printed_lines(text):
    """Return the lines of a text, without notices about compiling, which depend on the cache."""
    return [
        line.rstrip()
        for line in text.splitlines()
        if "spanboost: compiling for this kind of model" not in line
    ]
