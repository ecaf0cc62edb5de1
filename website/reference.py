"""Generate the command-line reference from the parser."""

import argparse
from collections.abc import Iterator
from typing import Any

from spanboost.cli.parser import parser

INTRODUCTION = """\
# Command-line reference

This page is generated from the program. `spanboost COMMAND --help` shows the same text in a
terminal. The [guide](command-line.md) explains the commands with examples.
"""


def page() -> str:
    """Return the page with all commands."""
    return "\n".join([INTRODUCTION, *map(_command, commands())])


def commands() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of each command."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def _command(parser: argparse.ArgumentParser) -> str:
    description, _, examples = (parser.description or "").partition("examples:\n")
    parts = [f"## {parser.prog}\n", f"{description.rstrip()}\n"]
    if examples:
        parts.append(f"**Examples**\n\n```sh\n{_dedent(examples)}\n```\n")
    parts += [_group(parser, group) for group in parser._action_groups if group._group_actions]
    return "\n".join(parts)


def _group(parser: argparse.ArgumentParser, group: Any) -> str:
    formatter: Any = parser._get_formatter()
    rows = [
        f"| {_names(action)} | {_prose(formatter, action)} |" for action in group._group_actions
    ]
    return "\n".join([f"| {group.title} | |", "|---|---|", *rows, ""])


def _names(action: argparse.Action) -> str:
    """Return all names of an option, and its argument."""
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
