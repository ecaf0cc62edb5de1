"""One fit of an estimator: the rows it is fitted to, the thread that fits it, and its forecasts."""

import copy
import warnings
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any, NamedTuple, Self

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.errors import ModelFileError
from spanboost.losses import Logistic, Softmax
from spanboost.models.refitting.catboost import fit_catboost
from spanboost.models.refitting.columns import (
    Columns,
    category_columns,
    columns_of,
    restore_columns,
    to_matrix,
)
from spanboost.models.refitting.libraries import (
    CATBOOST,
    DEFAULT,
    FORMS,
    NAMED,
    LibraryEstimator,
)
from spanboost.models.refitting.lightgbm import fit_lightgbm
from spanboost.rows.block import Block

LEAST = 1e-6  # the smallest probability of a class
REACH = 400.0  # the largest forecast with a log link, relative to the mean label


class FitTask(NamedTuple):
    """The rows that an estimator is fitted to. Nothing else changes them."""

    estimator: Any  # one of NAMED, a LibraryEstimator, or an object with fit and predict
    loss: Any
    seed: int
    names: dict[str, int]  # columns of sparse rows by name
    rows: Block
    labels: Array  # [rows] numbers, or class numbers
    weights: Array  # [rows]


class Fit:
    """A fitted estimator; it never changes.

    predict: from a matrix to numbers, or to probabilities.
    classes: the labels of these probabilities; empty for numbers.
    mean: the mean label.
    library, data: the library and its form of the estimator; None and empty for other estimators.
    """

    def __init__(
        self,
        predict: Callable[[Any], Array],
        columns: Columns,
        classes: Array,
        mean: float,
        library: str | None = None,
        data: bytes = b"",
    ) -> None:
        self.predict, self.columns, self.classes, self.mean = predict, columns, classes, mean
        self.library, self.data = library, data

    def forecasts(self, rows: Block, d: int, log_link: bool) -> Array:
        """Return forecasts [rows, d] in the units of the labels; for classes, their scores.

        log_link: whether forecasts are means, which must be positive.
        """
        given = np.asarray(self.predict(to_matrix(rows, self.columns)), np.float64)
        if len(self.classes) == 0:
            values = np.where(np.isfinite(given), given, self.mean).reshape(-1, 1)
            return np.clip(values, self.mean / REACH, self.mean * REACH) if log_link else values
        shares = given.reshape(len(given), -1)
        if shares.shape[1] == 1:
            shares = np.hstack([1 - shares, shares])
        shares = np.clip(np.where(np.isfinite(shares), shares, 0.5), LEAST, 1 - LEAST)
        if d == 1:
            return np.log(shares[:, 1:] / shares[:, :1])
        scores = np.full((len(shares), d), np.log(LEAST))
        scores[:, self.classes.astype(np.int64)] = np.log(shares)
        return scores

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a fit, by name."""
        yield "data", np.frombuffer(self.data, np.uint8)
        yield "column", self.columns.column
        yield "code", self.columns.code
        yield "classes", self.classes

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        return {"library": self.library, "width": self.columns.width, "mean": self.mean}

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the fit that `header` and `tensors` returned."""
        library, classes, mean = header["library"], tensors["classes"], float(header["mean"])
        if (
            library not in FORMS
            or set(tensors) != {"data", "column", "code", "classes"}
            or not (np.isfinite(mean) and np.isfinite(classes).all() and classes.ndim == 1)
        ):
            raise ModelFileError("a fit of the file is invalid")
        columns = restore_columns(tensors["column"], tensors["code"], header["width"])
        data = tensors["data"].tobytes()
        try:
            predict = FORMS[library].load(data)
        except Exception as error:  # each library has errors of its own
            raise ModelFileError(f"a fit of the file cannot be read: {error}") from None
        return cls(predict, columns, classes, mean, library, data)

    def __reduce__(self) -> Any:
        if self.library is None:
            return type(self), (self.predict, self.columns, self.classes, self.mean)
        return type(self).restore, (self.header(), dict(self.tensors()))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class RunningFit:
    """A fit that a thread of its own computes."""

    def __init__(self, task: FitTask) -> None:
        self._fit: Fit | None = None
        self._thread: Thread | None = Thread(target=self._run, args=(task,), name="spanboost-fit")
        self._thread.start()

    @classmethod
    def finished(cls, fit: Fit | None) -> Self:
        """Return one that is finished."""
        running = object.__new__(cls)
        running._fit, running._thread = fit, None
        return running

    def wait(self) -> Fit | None:
        """Return the fit, as soon as it is finished; None if it failed."""
        if self._thread is not None:
            self._thread.join()
        return self._fit

    def _run(self, task: FitTask) -> None:
        try:
            self._fit = fit_estimator(task)
        except Exception as error:
            text = f"the estimator could not be fitted to {len(task.labels):,} rows"
            # from this thread: if the warning is an error, no model is half-way through a block
            warnings.warn(f"{text}; the fit before stays: {error}", stacklevel=2)

    def __reduce__(self) -> Any:
        return type(self).finished, (self.wait(),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def fit_estimator(task: FitTask) -> Fit | None:
    """Fit an estimator; None if the rows have only one class, or nothing can be learned."""
    columns = columns_of(task.rows, task.names)
    X, y, classes = to_matrix(task.rows, columns), task.labels, np.zeros(0)
    if isinstance(task.loss, Logistic | Softmax):
        classes, y = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            return None
    mean = float(np.average(task.labels, weights=task.weights))
    estimator, categories = task.estimator, category_columns(task.rows, columns)
    if isinstance(estimator, str):
        if estimator == CATBOOST:
            fitted = fit_catboost(X, y, task.weights, task.loss, task.seed)
        else:
            fitted = fit_lightgbm(estimator, X, y, task.weights, categories, task.loss, task.seed)
        if fitted is None:
            return None
        return _as_data(NAMED[estimator], fitted, columns, classes, mean)
    if isinstance(estimator, LibraryEstimator):
        own = estimator.library == DEFAULT and categories
        given: dict[str, Any] = {"categorical_feature": categories} if own else {}
        fitted = estimator.build().fit(X, y, sample_weight=task.weights, **given)
        return _as_data(estimator.library, fitted, columns, classes, mean)
    fitted = copy.deepcopy(estimator)
    given = {} if (task.weights == 1).all() else {"sample_weight": task.weights}
    fitted.fit(X, y, **given)
    predict = fitted.predict_proba if len(classes) else fitted.predict
    return Fit(predict, columns, classes, mean)


def _as_data(library: str, fitted: Any, columns: Columns, classes: Array, mean: float) -> Fit:
    form = FORMS[library]
    data = form.dump(fitted)
    return Fit(form.load(data), columns, classes, mean, library, data)
