"""The configuration file of a service with several models (`spanboost serve --config`).

The keys of a model are the options of `spanboost serve`, without the leading dashes. They are
parsed by the same parser, so values are checked in the same way.
"""

import os
import re
import tomllib
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from spanboost.cli.service_options import add_serve_options
from spanboost.errors import UsageError, did_you_mean

# options that apply to the whole process, so they are given on the command line
OF_PROCESS = ("config", "host", "port", "quiet", "log", "tls_cert", "tls_key")
# a leader that is not available would delay the other models, and a worker has one model
SINGLE = ("follow", "workers")
OTHERS = ("dir", *SINGLE, *OF_PROCESS)
PATHS = ("dir", "model")  # relative to the folder of the configuration file
TOKENS = "tokens"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class ModelConfig(NamedTuple):
    """A model of the service: its name, its options, and its tokens by scope."""

    name: str
    args: Namespace
    tokens: dict[str, str]


def read_config(args: Namespace, variables: dict[str, str]) -> list[ModelConfig]:
    """Return the models that the file of --config defines; UsageError if it is not valid.

    variables: by scope, the environment variable with the token of models that do not name one.
    """
    path = Path(args.config)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a valid TOML file: {error}") from None
    tables = content.pop("models", None)
    if content or not isinstance(tables, dict) or not tables:
        found = f" (got {', '.join(map(repr, content))})" if content else ""
        raise UsageError(f"{path} must contain a table [models.NAME] for each model{found}")
    _refuse_model_options(args)
    configs = [_read_model(path, name, table, args, variables) for name, table in tables.items()]
    _refuse_shared_folders(path, configs)
    return configs


def _refuse_model_options(args: Namespace) -> None:
    """Raise UsageError if an option of a model is on the command line."""
    defaults = vars(_parser(args.config).parse_args(["--config", args.config]))
    for name, value in defaults.items():
        if name not in OF_PROCESS and getattr(args, name) != value:
            flag = f"--{name.replace('_', '-')}" if len(name) > 1 else f"-{name}"
            hint = "" if name in OTHERS else f"; set it in {args.config}"
            raise UsageError(f"{flag} cannot be used with --config{hint}")


def _read_model(
    path: Path, name: str, table: Any, args: Namespace, variables: dict[str, str]
) -> ModelConfig:
    where = f"{path}: [models.{name}]"
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{path}: the name of a model consists of at most 64 letters, digits, '-', '_' and '.' "
            f"(got {name!r})"
        )
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table")
    named = table.pop(TOKENS, {})
    if not isinstance(table.get("dir"), str):
        raise UsageError(f"{where} needs the key 'dir', the path of its state folder")
    words = [_option(where, path.parent, key, value) for key, value in table.items()]
    parsed = _parser(where).parse_args([word for word in words if word])
    parsed.quiet = args.quiet
    return ModelConfig(name, parsed, _read_tokens(where, named, variables))


def _option(where: str, folder: Path, key: str, value: Any) -> str:
    """Return the option for a key and its value; empty text for false."""
    known = _keys()
    if key not in known:
        raise UsageError(f"{where} has an unknown key {key!r}{did_you_mean(key, known)}")
    flag = f"--{key}" if len(key) > 1 else f"-{key}"
    if isinstance(value, bool):
        return flag if value else ""
    if isinstance(value, list):  # such as the names of columns
        value = ",".join(map(str, value))
    if not isinstance(value, str | int | float):
        raise UsageError(f"{where}: the value of {key!r} must be a number, text or a list")
    return f"{flag}={folder / str(value) if key in PATHS else value}"


def _read_tokens(where: str, named: Any, variables: dict[str, str]) -> dict[str, str]:
    """Return the tokens by scope, from the environment variables that a model names."""
    if not isinstance(named, dict) or not all(isinstance(one, str) for one in named.values()):
        raise UsageError(f"{where}: {TOKENS!r} must be a table of names of environment variables")
    if unknown := sorted(named.keys() - variables.keys()):
        raise UsageError(
            f"{where}: {TOKENS!r} has an unknown key {unknown[0]!r}; expected "
            f"{', '.join(variables)}"
        )
    tokens = dict[str, str]()
    for scope, variable in (variables | named).items():
        token = os.environ.get(variable, "").strip()
        if token:
            tokens[scope] = token
        elif scope in named:
            raise UsageError(f"{where}: the environment variable {variable} is not set")
    return tokens


def _refuse_shared_folders(path: Path, configs: list[ModelConfig]) -> None:
    names = dict[Path, str]()
    for config in configs:
        folder = Path(config.args.dir).resolve()
        if folder in names:
            raise UsageError(
                f"{path}: the models {names[folder]!r} and {config.name!r} have the same folder "
                f"{config.args.dir}"
            )
        names[folder] = config.name


class _Parser(ArgumentParser):
    """A parser that raises an error instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")


def _parser(where: str) -> ArgumentParser:
    parser = _Parser(prog=where, allow_abbrev=False, add_help=False)
    add_serve_options(parser)
    return parser


def _keys() -> list[str]:
    """Return the keys that the table of a model may have."""
    defaults = vars(_parser("").parse_args(["--dir", ""]))
    return ["dir", *(name.replace("_", "-") for name in defaults if name not in OTHERS)]
