"""The reference of the command line, as a page: all that `--help` says, made from the parser."""

import argparse
from collections.abc import Iterator
from typing import Any

from spanboost.cli.parser import parser

INTRODUCTION = """\
# Command-line reference

This page is made from the program itself; `spanboost COMMAND --help` says the same in a terminal.
What the commands are good for is in [the command line](command-line.md), with examples.
"""


def page() -> str:
    """All commands."""
    return "\n".join([INTRODUCTION, *map(_command, commands())])


def commands() -> Iterator[argparse.ArgumentParser]:
    """The parser of each command."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def _command(parser: argparse.ArgumentParser) -> str:
    parts = [f"## {parser.prog}\n", f"{parser.description}\n"]
    parts += [_group(parser, group) for group in parser._action_groups if group._group_actions]
    if parser.epilog:
        head, _, lines = parser.epilog.partition("\n")
        parts.append(f"**{head.rstrip(':').capitalize()}**\n\n```sh\n{_dedent(lines)}\n```\n")
    return "\n".join(parts)


def _group(parser: argparse.ArgumentParser, group: Any) -> str:
    formatter: Any = parser._get_formatter()
    rows = [
        f"| {_names(action)} | {_prose(formatter, action)} |" for action in group._group_actions
    ]
    return "\n".join([f"| {group.title} | |", "|---|---|", *rows, ""])


def _names(action: argparse.Action) -> str:
    """All names of an option, and what follows them."""
    word = action.metavar or action.dest.upper()
    if not action.option_strings:
        return f"`{word}`"
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    return names if action.nargs == 0 else f"{names} `{word}`"


def _prose(formatter: Any, action: argparse.Action) -> str:
    text = formatter._expand_help(action) if action.help else ""
    for sign in "\\|*_<":
        text = text.replace(sign, f"\\{sign}")
    if action.choices:
        text += f". One of {', '.join(f'`{choice}`' for choice in action.choices)}"
    return text


def _dedent(lines: str) -> str:
    return "\n".join(line.strip() for line in lines.splitlines())
