"""Errors that users can fix, and warnings."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanboost.compiling.arrays import Array

_PACKAGE = __name__.partition(".")[0] + "."
_SHOWN = 8  # columns in a message
_SQUARED, _ABSOLUTE = ("squared", "squared_error"), ("absolute", "absolute_error")
_TWO_CLASSES, _CLASSES = ("logistic", "log_loss"), ("softmax", "log_loss")
_OTHER_NAMES = {  # of losses, as other libraries call them
    **dict.fromkeys(("mse", "rmse", "l2", "squared_error", "squared", "regression"), _SQUARED),
    **dict.fromkeys(("mae", "l1", "absolute_error", "absolute"), _ABSOLUTE),
    **dict.fromkeys(("pinball", "quantile_loss"), ("quantile",)),
    **dict.fromkeys(("log_loss", "logloss", "binary", "logistic", "bce"), _TWO_CLASSES),
    **dict.fromkeys(("cross_entropy", "multiclass", "multinomial", "softmax"), _CLASSES),
}


class DataError(ValueError):
    """A row that cannot be learned or predicted. The model learned nothing from its block.

    Attributes:
        row: Index of the row in the block that was passed, counted from 0.
        what: Description of the problem.
        field: The key of the invalid value in a dictionary, if it is known.
    """

    def __init__(self, row: int, what: str, field: str | None = None) -> None:
        super().__init__(row, what)
        self.row, self.what, self.field = row, what, field

    def __str__(self) -> str:
        return f"row {self.row}: {self.what}"


class ParameterError(ValueError):
    """A parameter whose value is not allowed: its name, and what is wrong with it."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


class UserError(ValueError):
    """An error that the user can fix. The message is one sentence, shown without a traceback."""


class UsageError(UserError):
    """Options that are invalid or contradict each other."""


class ModelFileError(UserError):
    """A file that is not a model this version can read."""


def install_hint(extra: str) -> str:
    """Return the end of a message that says how to install the packages of an extra."""
    return f"run pip install '.[{extra}]' in a clone of spanboost"


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return the end of a message that suggests known names close to a wrong one.

    It is empty if there are none, or if the wrong value is not a name.
    """
    close = close_names(name, known) if isinstance(name, str) else []
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that are close to another one, the closest first."""
    plain: dict[str, list[str]] = {}
    for one in known:
        plain.setdefault(one.casefold(), []).append(one)
    near = get_close_matches(name.casefold(), plain, 3)
    return [one for match in near for one in plain[match]]


def suggest_column(name: Any, columns: Iterable[str]) -> str:
    """Return what `did_you_mean` returns; without a close name, it lists the columns."""
    columns = [*columns]
    return did_you_mean(name, columns) or _list_columns(columns)


def _list_columns(columns: Sequence[str]) -> str:
    return f"; the columns are {list_names(columns)}"


def list_names(names: Sequence[str]) -> str:
    """Return names as a message shows them: the first ones, and how many there are besides."""
    shown = ", ".join(f"{one!r:.40}" for one in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{shown}{more}"


def suggest_loss(name: Any, known: Iterable[str]) -> str:
    """Return what `did_you_mean` returns; it knows the names of losses in other libraries, too."""
    known = [*known]
    others = _OTHER_NAMES.get(name.casefold(), ()) if isinstance(name, str) else ()
    meant = [one for one in others if one in known]
    return f"; did you mean {meant[0]!r}?" if meant else did_you_mean(name, known)


class ClusterError(RuntimeError):
    """A failure of the machines of a cluster. The message is one sentence."""


class RowWarning(UserWarning):
    """A row that may harm the model.

    Attributes:
        row: Index of the row in the stream, counted from 0.
        what: Description of the problem, and of its effect on the model.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(row, what)
        self.row, self.what = row, what

    def __str__(self) -> str:
        return f"row {self.row}: {self.what}"


class LabelWarning(RowWarning):
    """A label far outside the label range, or labels that seem to have new units."""


class WeightWarning(RowWarning):
    """Importance weights that are large: many models then learn poorly."""


class ConstantWarning(UserWarning):
    """A loss without the constants that the theorems need. They are estimated instead."""


def warn_caller(warning: Warning) -> None:
    """Issue a warning that points at the first line of code outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def capture_warnings(work: Callable[[], Any]) -> tuple[Any, list[RowWarning]]:
    """Run `work`; return its result and its warnings about rows.

    On a worker these warnings would be lost. Other warnings are issued again.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = work()
    of_rows = []
    for one in caught:
        if isinstance(one.message, RowWarning):
            of_rows.append(one.message)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return answer, of_rows


def renumber_warnings(
    caught: Sequence[RowWarning], numbers: "Array", first: int = 0
) -> list[RowWarning]:
    """Return warnings with other row numbers: numbers[k - first] for row k."""
    return [type(one)(int(numbers[one.row - first]), one.what) for one in caught]


def reissue_warnings(caught: Sequence[RowWarning]) -> None:
    """Issue warnings from a worker again, to the caller of this package."""
    for warning in caught:
        warn_caller(warning)


def describe_connection_error(error: BaseException, trust: str) -> str:
    """Return why a server cannot be reached, and what to do; `trust` as for the advice."""
    reason = str(getattr(error, "reason", None) or error) or type(error).__name__
    advice = connection_advice(error, trust)
    return reason if advice is None else f"{reason}; {advice}"


def connection_advice(error: BaseException, trust: str) -> str | None:
    """Return what to do about a server that cannot be reached; None if a retry may succeed.

    trust: how to make this program accept a certificate.
    """
    import socket
    import ssl

    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"if this is the certificate of the server, {trust}"
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            return "the server does not use TLS: give an address that begins with http://"
        if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
            return "check the name of the host"
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that caused it; `URLError` names its cause as a reason."""
    while isinstance(error, BaseException):
        yield error
        error = getattr(error, "reason", None) or error.__cause__ or error.__context__
