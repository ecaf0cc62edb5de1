"""The argument parser of every command: options in full, errors in one line, with suggestions."""

import argparse
import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, NoReturn

from spanboost.errors import did_you_mean

_EXTRA = "unrecognized arguments: "  # begins a message of argparse
_OTHER_NAMES = {  # what options are called elsewhere
    **dict.fromkeys(("target", "y", "response", "label-column", "label-name"), "label"),
    **dict.fromkeys(("sep", "separator", "field-separator"), "delimiter"),
    **dict.fromkeys(("drop", "exclude", "skip-columns", "ignore-columns"), "ignore"),
    **dict.fromkeys(("loss-function", "objective", "criterion"), "loss"),
    **dict.fromkeys(("final-regressor", "out", "save"), "output"),
    **dict.fromkeys(("initial-regressor", "resume-from"), "initial"),
    **dict.fromkeys(("random-state", "random-seed"), "seed"),
}
_DEPTH = "; the depth of trees is set in Python, with Trees(depth=...) (docs/trees.md)"
_PASSES = "; DATA is read once; --replay R learns again from recent rows"
_ADVICE = {  # options of other programs that have no counterpart
    **dict.fromkeys(("max-depth", "depth", "num-leaves"), ("--learner", _DEPTH)),
    **dict.fromkeys(("passes", "epochs", "n-epochs", "num-epochs"), ("--replay", _PASSES)),
}  # the first one is an option without which the command cannot use the advice
_ADVISED = re.compile(r"(?:use|with) (--?[a-z][a-z-]*)")  # options that hints name
_CHOICE = re.compile(r"invalid choice: '(?P<given>.*)' \(choose from (?P<known>.*)\)$")


class _StoreOnce(argparse.Action):
    """Stores the value of an option; refuses another value when the option is repeated."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store a value in the namespace."""
        if option_string is not None and isinstance(parser, CommandParser):
            earlier = parser.given.setdefault(self.dest, values)
            if _show_value(earlier) != _show_value(values):  # NaN differs from itself
                both = f"{_show_value(earlier)} and {_show_value(values)}"
                raise argparse.ArgumentError(self, f"given twice, as {both}; give one of them")
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """A parser that reports an error in one line and never guesses an abbreviated option.

    given: the values so far of options with one value, by destination.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False} | settings)
        self._words: Sequence[str] = ()
        self.given: dict[str, Any] = {}
        for name in (None, "store"):  # the action of options that name none
            self.register("action", name, _StoreOnce)

    @property
    def flags(self) -> frozenset[str]:
        """The options of the command."""
        return frozenset(self._option_string_actions)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; report an unknown option before a required one that is missing."""
        self._words, self.given = args or (), {}
        self._refuse_unknown(self._words)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print an error, with a suggestion for a misspelt choice, and exit with status 2."""
        if found := _CHOICE.search(message):
            known = re.findall("[^', ]+", found["known"])
            message += self._suggest_comparison(found["given"], known) or did_you_mean(
                found["given"], known
            )
        if message.startswith(_EXTRA):
            message = self._describe_extra(message.removeprefix(_EXTRA))
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _suggest_comparison(self, given: str, known: Sequence[str]) -> str:
        """Return a suggestion for a list of learners, where one is expected."""
        several = "," in given and {*given.split(",")} <= {*known}
        needed = "--compare" in self.flags and "linear" in known
        return f"; to compare them, use --compare {given}" if several and needed else ""

    def _describe_extra(self, extra: str) -> str:
        """Return why arguments that belong to no option are refused."""
        for option, word in pairwise(self._words):
            if option.startswith("--ray=") and extra.split(maxsplit=1)[0] == word:
                return (
                    f"{word} is not the address of a Ray cluster; --ray takes HOST:PORT, "
                    "ray://HOST:PORT or auto"
                )
        return (
            f"unexpected argument {extra}; write data files next to each other, and several values "
            "of an option with commas, as in --ignore a,b"
        )

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        known = self._option_string_actions
        for word in words:
            is_option = word.startswith("-")
            if word == "--" or (self._subparsers is not None and not is_option):
                return  # data files, or the options of a command, which has its own parser
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in name and name not in known:
                self.error(f"unknown option {name}{_suggest_option(name, [*known])}")
            if len(name) > 2 and f"-{name}" in known:  # argparse would read -i gnore
                self.error(f"unknown option {name}; did you mean -{name}?")


def fitting_hints(message: str, flags: Collection[str]) -> str:
    """Return a message without hints to use options that are not among these.

    The library gives a hint without knowing the command that shows it. Hints follow a semicolon.
    """
    problem, *hints = message.split("; ")
    kept = [hint for hint in hints if {*_ADVISED.findall(hint)} <= {*flags}]
    return "; ".join([problem, *kept])


def _show_value(value: Any) -> str:
    """Return the value of an option as it is written."""
    separator = " " if isinstance(value, list) else ","
    return repr(separator.join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def _suggest_option(name: str, known: Sequence[str]) -> str:
    """Return a suggestion for an unknown option; dashes and underscores count as equal."""
    flags = {flag.lstrip("-"): flag for flag in known}
    plain = name.lstrip("-").replace("_", "-")
    needed, advice = _ADVICE.get(plain, ("", ""))
    if needed in known:
        return advice
    if meant := flags.get(_OTHER_NAMES.get(plain, "")):
        return f"; did you mean {meant}?"
    hint = did_you_mean(plain, [*flags])
    return re.sub("'([^']*)'", lambda found: flags[found[1]], hint)
