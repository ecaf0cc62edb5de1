"""Tell the format of a file from its first bytes: where its name does not tell, or is wrong."""

import re
from typing import NoReturn

from spanboost.data.problems import StreamError
from spanboost.data.target import as_number

LIMIT = 1 << 16  # bytes of the first line that are read, at most
_BINARY = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
# text may begin with PAR1, but not with the bytes after it
_NEVER_TEXT = re.compile(rb"PAR1\x15|ARROW1\0|\xff{4}..\0\0", re.DOTALL)
_VW_LABEL = re.compile(r"(\S+(\s+\S+){0,2}\s+)?('\S*\s*)?")
_ENTRY = re.compile(r"(qid|\d+):\S+")


def format_of_line(line: bytes) -> str | None:
    """Return the format of a file that begins with this line; None if it is not known."""
    for mark, format in _BINARY.items():
        if line.startswith(mark):
            return format
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return None
    if not text or "\0" in text:
        return None
    if text.startswith("{"):
        return "jsonl"
    if _is_vw(text):
        return "vw"
    return "svmlight" if _is_svmlight(text) else "csv"


def refuse_binary(name: str, first: bytes) -> None:
    """Raise a StreamError if a file of text begins with the bytes of a Parquet or Arrow file."""
    if _NEVER_TEXT.match(first):
        format = next(format for mark, format in _BINARY.items() if first.startswith(mark))
        raise StreamError(f"{name}: the file is {format.title()}, not text; {_advice(format)}")


def refuse_as_table(name: str, line: bytes) -> NoReturn:
    """Raise a StreamError for a file that is read as Parquet or Arrow, and is not.

    line: its first line, decompressed.
    """
    format = format_of_line(line)
    if format in _BINARY.values():
        raise StreamError(f"{name}: the file is compressed; decompress it first")
    advice = "" if format is None else f"; {_advice(format)}"
    raise StreamError(f"{name}: not a Parquet or Arrow file{advice}")


def _advice(format: str) -> str:
    return f"use --format {format}, or a name that ends in .{format}"


def is_json_array(line: bytes) -> bool:
    """Return whether a file that begins with this line is a JSON array of objects."""
    return re.match(rb"\[\s*(\{|$)", line.removeprefix(b"\xef\xbb\xbf").strip()) is not None


def is_json_over_lines(line: bytes) -> bool:
    """Return whether a file that begins with this line is a JSON object over several lines."""
    return line.removeprefix(b"\xef\xbb\xbf").strip() == b"{"


def is_comment(line: bytes) -> bool:
    """Return whether a line is a comment: `# note`, not a name of a column such as `#id`."""
    return re.match(rb"#(\s|#|$)[^,;\t|]*$", line.removeprefix(b"\xef\xbb\xbf").strip()) is not None


def _is_vw(text: str) -> bool:
    """Return whether a line is a label, or nothing, and a namespace: `1 |a x:2`, `| x y`."""
    label, bar, features = text.partition("|")
    if not bar or not re.match(r"\S*\s+\S", features) or not _VW_LABEL.fullmatch(label):
        return False
    words = [word for word in label.split() if not word.startswith("'")]
    return all(as_number(word) is not None for word in words)


def _is_svmlight(text: str) -> bool:
    """Return whether a line is a label and entries: `1 3:0.5 7:2`."""
    label, *entries = text.partition("#")[0].split() or [""]
    return bool(entries) and as_number(label) is not None and all(map(_ENTRY.fullmatch, entries))
