"""What a command prints, compared with what it printed when somebody looked: numbers may differ a
little, `...` stands for anything."""

import re

NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?%?")
TOLERANCE = 0.02


def fits(shown, printed):
    """Whether a line says the same, numbers to within a tolerance."""
    parts = [re.escape(part) for part in re.split(r"\.\.\.", shown)]
    if len(parts) > 1:
        return re.fullmatch(".*".join(parts), printed) is not None
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(near(*map(number, pair)) for pair in pairs)


def number(text):
    return float(text.replace(",", "").rstrip("%"))


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) + 1e-4


def lines_fit(shown, printed):
    """All lines in order; a line of nothing but `...` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(lines_fit(shown[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and fits(shown[0], printed[0]) and lines_fit(shown[1:], printed[1:])


def said(text):
    """The lines of a text; that something was compiled depends on what ran before."""
    return [
        line.rstrip()
        for line in text.splitlines()
        if "spanboost: compiling for this kind of model" not in line
    ]
