"""Rows and labels of the scikit-learn estimators: checks, data frames, sparse matrices."""

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from spanboost.compiling.arrays import Array
from spanboost.data.frames import FrameReader, frame_reader, refuse_infinite, refuse_new_texts
from spanboost.errors import DataError
from spanboost.rows.frame_rows import check_frame
from spanboost.rows.label_values import missing_label, refuse_times
from spanboost.rows.table_form import TableForm


class EstimatorRows:
    """Reads rows for the model of an estimator, in the form that its first rows had.

    frame: reads frames with columns of categories or times; None if the first rows had none.
    sparse: whether the model reads sparse rows.
    """

    def __init__(self, frame: FrameReader | None, sparse: bool) -> None:
        self.frame, self.sparse = frame, sparse

    @classmethod
    def like(cls, X: Any) -> Self:
        """Return a reader for rows like these, the first ones."""
        check_frame(X)
        return cls(frame_reader(X), bool(sparse.issparse(X)))

    def read(self, estimator: Any, X: Any, *, learn: bool = False, reset: bool = False) -> Any:
        """Return checked rows as the model reads them.

        learn: add new categories. reset: the rows are the first ones of the estimator.
        """
        check_frame(X)
        if self.frame is not None:
            table = self.frame.table(X)
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            return self.frame.read(table, learn=learn)
        allowed = estimator.__sklearn_tags__().input_tags
        try:
            rows = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr" if allowed.sparse else False,
                ensure_all_finite="allow-nan" if allowed.allow_nan else True,
            )
        except (ValueError, TypeError):  # NumPy raises a TypeError for times
            refuse_infinite(X)
            refuse_new_texts(X)
            raise
        if self.sparse:
            return sparse.csr_array(rows)
        return rows.toarray() if sparse.issparse(rows) else rows

    def read_one(self, estimator: Any, x: Any) -> Any:
        """Return one row as the model reads it.

        x: an array, a dictionary or a pandas Series by column, or a frame with one row.
        """
        names = getattr(estimator, "feature_names_in_", None)
        if hasattr(x, "to_dict") and not hasattr(x, "columns"):  # a Series
            x = x.to_dict()
        if self.frame is not None:
            table = self.frame.row(x) if isinstance(x, Mapping) else self.frame.table(x)
            rows, number = self.frame.read(table, learn=False), table.num_rows
        else:
            if isinstance(x, Mapping):
                columns = range(estimator.n_features_in_) if names is None else names
                x = [x.get(name, np.nan) for name in columns]
            rows = np.atleast_2d(np.asarray(x, np.float64))
            number = len(rows)
            rows = sparse.csr_array(rows) if self.sparse else rows
        if number != 1:
            raise ValueError(f"expected one row (got {number})")
        return rows

    def feature_name(self, estimator: Any, feature: str | int) -> Any:
        """Return the name of the user's column for a model's feature, or its number."""
        column, names = self.column(feature), getattr(estimator, "feature_names_in_", None)
        return column if names is None else str(names[column])

    def table_form(self, estimator: Any) -> TableForm | None:
        """Return the columns of the rows, in the order of the model; None if they have no names."""
        if self.frame is not None:
            return self.frame.table_form()
        names = getattr(estimator, "feature_names_in_", None)
        return None if names is None or self.sparse else TableForm([*map(str, names)])

    def state(self) -> dict[str, Any]:
        """Return what the reader knows as plain values."""
        frame = None if self.frame is None else self.frame.state()
        return {"frame": frame, "sparse": self.sparse}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """Return the reader of a state."""
        frame = None if state["frame"] is None else FrameReader.restore(state["frame"])
        return cls(frame, bool(state["sparse"]))

    def column(self, feature: str | int) -> int:
        """Return the column of the user's rows for a model's feature: a number, or "code j"."""
        return int(feature) if self.frame is None else self.frame.column(feature)


def parse_targets(y: Any) -> Array:
    """Return numbers as an array [rows] or [rows, targets]."""
    _require(y)
    refuse_times(y)
    try:
        targets: Array = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y"
        )
    except ValueError:
        _refuse_text(y)
        raise
    if targets.ndim == 2 and np.isnan(targets).any():
        row, target = np.argwhere(np.isnan(targets))[0].tolist()
        raise DataError(row, missing_label(f" in column {target} of y"))
    return targets


def parse_classes(y: Any) -> Array:
    """Return labels of classes as an array [rows]."""
    _require(y)
    y = column_or_1d(y, warn=True)
    if not len(y):
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    _refuse_missing(y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def _refuse_text(y: Any) -> None:
    """Raise a DataError for the first label that is text and not a number."""
    for row, labels in enumerate(np.atleast_1d(np.asarray(y, dtype=object))):
        for target, label in enumerate(np.atleast_1d(np.asarray(labels, dtype=object)).flat):
            if isinstance(label, str) and not _is_numeral(label):
                where = f" in column {target} of y" if np.ndim(labels) else ""
                what = f"the label {label!r:.40}{where} is not a number"
                raise DataError(row, f"{what}; use BoostingClassifier for classes")


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_missing(y: Array) -> None:
    """Raise a DataError for the first row without a label, in an array of objects."""
    for row, label in enumerate(y.tolist() if y.dtype == object else ()):
        nan = isinstance(label, float) and math.isnan(label)
        if label is None or nan or type(label).__name__ in ("NAType", "NaTType"):  # of pandas
            raise DataError(row, missing_label())


def _require(y: Any) -> None:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
