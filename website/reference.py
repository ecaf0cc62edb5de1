"""The reference of the command line, as a page: all that `--help` says, made from the parser."""

import argparse
from collections.abc import Iterator
from typing import Any

from spanboost.cli import _parser

INTRODUCTION = """\
# Command-line reference

This page is made from the program itself; `spanboost COMMAND --help` says the same in a terminal.
What the commands are good for, with examples that are run, is in [the command line](command-line.md).
"""


def page() -> str:
    """All commands."""
    return "\n".join([INTRODUCTION, *map(_command, commands())])


def commands() -> Iterator[argparse.ArgumentParser]:
    """The parser of each command."""
    for action in _parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def _command(parser: argparse.ArgumentParser) -> str:
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    parts = [f"## {parser.prog}\n", f"{parser.description}\n", f"```text\n{usage}\n```\n"]
    parts += [_group(parser, group) for group in parser._action_groups if group._group_actions]
    if parser.epilog:
        head, _, lines = parser.epilog.partition("\n")
        parts.append(f"**{head.rstrip(':').capitalize()}**\n\n```sh\n{_dedent(lines)}\n```\n")
    return "\n".join(parts)


def _group(parser: argparse.ArgumentParser, group: Any) -> str:
    formatter: Any = parser._get_formatter()
    rows = [
        f"| `{formatter._format_action_invocation(action)}` | {_prose(formatter, action)} |"
        for action in group._group_actions
    ]
    return "\n".join([f"| {group.title} | |", "|---|---|", *rows, ""])


def _prose(formatter: Any, action: argparse.Action) -> str:
    text = formatter._expand_help(action) if action.help else ""
    if action.choices and "{" not in formatter._format_action_invocation(action):
        text += f" ({', '.join(map(str, action.choices))})"
    for sign in "\\|*_<":
        text = text.replace(sign, f"\\{sign}")
    return text


def _dedent(lines: str) -> str:
    return "\n".join(line.strip() for line in lines.splitlines())
