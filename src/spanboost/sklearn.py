"""Estimators for scikit-learn: `BoostingRegressor` and `BoostingClassifier`."""

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from spanboost.analysis.importances import feature_importances
from spanboost.analysis.partial_sums import partial_predictions
from spanboost.checks import is_integer
from spanboost.compiling.arrays import Array
from spanboost.data.frames import frame_reader
from spanboost.errors import DataError, install_hint
from spanboost.learners.trees import Trees
from spanboost.losses import Absolute, Hinge, Huber, Logistic, Softmax, Squared, resolve
from spanboost.models.class_table import ClassTable
from spanboost.models.class_weights import ClassWeights, whole_weights
from spanboost.models.estimators import (
    check_regression_loss,
    class_codes,
    constructor,
    named_loss,
    new_model,
)
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO
from spanboost.models.predictions import probabilities
from spanboost.parallel.executor import capture_warnings, reissue_warnings, renumber_warnings
from spanboost.rows.block import Rows

try:
    from scipy import sparse
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import assert_all_finite, check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as error:
    raise ImportError(
        f"spanboost.sklearn needs scikit-learn 1.6 or newer: {install_hint('sklearn')}"
    ) from error

REGRESSION = {"squared_error": Squared(), "absolute_error": Absolute(), "huber": Huber()}
QUANTILE = "quantile:"  # followed by a number between 0 and 1
CLASSIFICATION = {"log_loss": None, "hinge": Hinge()}  # None: by the number of classes


def _one_booster(estimator: Any) -> bool:
    if estimator.learner == AUTO:
        raise AttributeError("staged_predict needs a single booster, but learner='auto' has many")
    return True


def _estimates_probabilities(estimator: Any) -> bool:
    if estimator.loss != "log_loss":
        raise AttributeError(f"probabilities need loss='log_loss' (got loss={estimator.loss!r})")
    return True


_NAMES = {  # parameters of ModelSpec, and what scikit-learn calls them
    "learner": "learner",
    "booster": "booster",
    "n": "n_estimators",
    "step": "learning_rate",
    "budget": "budget",
}
_FITTING: dict[str, Any] = {"n_epochs": 1, "shuffle": True, "random_state": None}


class _Boosting(BaseEstimator):
    """Base class of the regressor and the classifier."""

    _names: ClassVar = _NAMES
    learner: Any
    loss: Any
    n_epochs: int
    shuffle: bool
    random_state: Any
    n_features_in_: int
    model_: Model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = self._reads_features
        return tags

    @property
    def _reads_features(self) -> bool:
        """Whether the learner accepts sparse rows, missing values and categories."""
        return isinstance(self.learner, str) or getattr(self.learner, "named", False) is True

    def __getstate__(self) -> dict[str, Any]:
        # The model as bytes: joblib may load arrays as read-only, and the model writes to them.
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = pickle.dumps(state["model_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "model_" in state:
            state = state | {"model_": pickle.loads(state["model_"])}
        super().__setstate__(state)

    @property
    def feature_importances_(self) -> Array:
        """The share of each column in the gain of all splits of the trees; the sum is 1."""
        if not (isinstance(self.learner, Trees) or self.learner in (AUTO, "trees")):
            raise AttributeError("feature_importances_ needs trees: use learner='auto' or 'trees'")
        check_is_fitted(self, "model_")
        shares = np.zeros(self.n_features_in_)
        for feature, share in feature_importances(self.model_).items():
            column = feature if self._frame is None else self._frame.column(feature)
            shares[int(column)] += share
        return shares

    def _fit(self, X: Any, y: Array, sample_weight: Any, loss: Any) -> Self:
        """Train a new model with several passes, each in its own order if `shuffle` is set."""
        if not (is_integer(self.n_epochs) and self.n_epochs >= 1):
            raise ValueError(f"n_epochs must be a positive integer (got {self.n_epochs!r})")
        rows, weights = self._rows(X, y, sample_weight, first=True)
        random = check_random_state(self.random_state)
        model = self._new_model(loss, random)
        for _ in range(self.n_epochs):
            order = random.permutation(len(y)) if self.shuffle else np.arange(len(y))
            part = rows.take(order) if isinstance(rows, Rows) else rows[order]
            learned = model.labels.rows
            work = partial(model.learn_many, part, y[order], weights[order])
            try:
                _, caught = capture_warnings(work)
            except DataError as error:
                raise DataError(int(order[error.row]), error.what) from None
            reissue_warnings(renumber_warnings(caught, order, learned))
        self.model_ = model
        return self

    def _learn(self, X: Any, y: Array, sample_weight: Any, loss: Any) -> Self:
        """Learn one more block, in the order given."""
        first = not hasattr(self, "model_")
        rows, weights = self._rows(X, y, sample_weight, first=first)
        model = self._new_model(loss, self.random_state) if first else self.model_
        model.learn_many(rows, y, weights)
        self.model_ = model  # set last: an invalid first block leaves the estimator unfitted
        return self

    def _new_model(self, loss: Any, random: Any) -> Model:
        seed = int(check_random_state(random).randint(2**31 - 1))
        return new_model(self, self._names, loss=loss, seed=seed)

    def _rows(self, X: Any, y: Array, weights: Any, *, first: bool) -> tuple[Any, Array]:
        """Return checked rows to learn, and their weights."""
        if first:
            self._frame, self._sparse = frame_reader(X), sparse.issparse(X)
            if self._frame is not None and not self._reads_features:
                self._frame.refuse(self.learner)
        rows = self._read(X, learn=True, reset=first)
        check_consistent_length(X, y)
        return rows, _check_sample_weight(weights, y)

    def _read(self, X: Any, *, learn: bool = False, reset: bool = False) -> Any:
        """Return checked rows as the model reads them: sparse if the first rows were sparse."""
        if self._frame is not None:
            table = self._frame.table(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            return self._frame.read(table, learn=learn)
        allowed = self.__sklearn_tags__().input_tags
        rows = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if allowed.sparse else False,
            ensure_all_finite="allow-nan" if allowed.allow_nan else True,
        )
        if self._sparse:
            return sparse.csr_array(rows)
        return rows.toarray() if sparse.issparse(rows) else rows

    def _predict(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.predict_many(self._read(X)))

    def _staged_predictions(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        return partial_predictions(self.model_, self._read(X))


class BoostingRegressor(RegressorMixin, _Boosting):
    """Online gradient boosting for regression.

    Parameters
    ----------
    learner : "auto", "trees", "linear", "stumps", "stumps-intercept", "network" or an object
        The learner to boost. The default, "auto", runs many boosters at once and needs no tuning.
        An object is a learner of this library with its parameters, such as ``Trees(depth=4)``, or
        your own learner: see docs/bring-your-own.md.
    booster : "span" or "hull"
        Algorithm 1 or Algorithm 2.
    n_estimators : int, "auto" or None
        Number of copies of the learner. None is 100 for trees, 32 for other learners; "auto"
        chooses it from the stream (docs/online-choice.md).
    learning_rate : float, "auto" or None
        The step eta of Algorithm 1, from 1 / n_estimators to 1. None is ln(n) / n; "auto" chooses
        it from the stream.
    loss : "squared_error", "absolute_error", "huber", "quantile:TAU" or a loss object
        "quantile:0.9" estimates the quantile 0.9. A loss object is one of ``spanboost.losses``, or
        your own.
    budget : "fast", "default" or "thorough"
        Size of learner="auto": more boosters, lower error, more time.
    label_range : "auto", "auto-zero", "growing", "growing-zero" or (low, high)
        Range of the labels. "auto" follows the labels; a label far outside the others is learned
        as if it were closer. "growing" grows to include every label. The others do so around 0.
    replay : int
        Number of earlier rows to learn again after each row: lower error, more time.
    memory : int
        Number of recent rows that ``replay`` draws from.
    replay_weight : float
        Factor on the importance weight of replayed rows, from 0.001 to 1.
    n_epochs : int
        Number of passes over the data in ``fit``.
    shuffle : bool
        Whether each pass of ``fit`` shuffles the rows. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None
        Random seed of the shuffling and of the learner.

    Attributes
    ----------
    model_ : the fitted spanboost model, which ``spanboost.save`` can write to a file

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from spanboost.sklearn import BoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(cross_val_score(BoostingRegressor(budget="fast", random_state=0), X, y).mean() > 0.4)
    True
    """

    _names: ClassVar = {**_NAMES, "label_range": "label_range"}
    __init__ = constructor(_names, keyword_only_after="learner", loss="squared_error", **_FITTING)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on all rows; discard what was learned before."""
        return self._fit(X, _labels(y, dtype=np.float64), sample_weight, self._loss())

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows, once, in the order given."""
        return self._learn(X, _labels(y, dtype=np.float64), sample_weight, self._loss())

    def predict(self, X: Any) -> Array:
        """Return a number for each row."""
        return self._predict(X)

    @available_if(_one_booster)
    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the predictions of the first copy, of the first two copies, and so on."""
        yield from self._staged_predictions(X)

    def _loss(self) -> Any:
        named = isinstance(self.loss, str) and not self.loss.startswith(QUANTILE)
        loss = named_loss(self.loss, REGRESSION, "'quantile:TAU'") if named else self.loss
        check_regression_loss(resolve(loss))
        return loss


class BoostingClassifier(ClassifierMixin, _Boosting):
    """Online gradient boosting for classification.

    The parameters are those of `BoostingRegressor` without ``label_range``, and with

    loss : "log_loss" or "hinge"
        "log_loss" estimates probabilities for any number of classes; "hinge" is for two.
    class_weight : None, "balanced" or dict of label and weight
        Factors of the sample weights. "balanced" gives all classes the same total weight: in
        ``fit`` by their frequencies in y, in ``partial_fit`` by their frequencies so far.

    Attributes
    ----------
    classes_ : the labels, sorted
    model_ : the fitted spanboost model, which ``spanboost.save`` can write to a file

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from spanboost.sklearn import BoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(cross_val_score(BoostingClassifier(budget="fast", random_state=0), X, y).mean() > 0.85)
    True
    """

    class_weight: Any
    _table: ClassTable | None  # the classes so far, if they were not named
    _class_weights: ClassWeights
    __init__ = constructor(
        _NAMES, keyword_only_after="learner", loss="log_loss", class_weight=None, **_FITTING
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on all rows; discard what was learned before."""
        y = _classes(y)
        self.classes_, self._table = np.unique(y), None
        self._class_weights = ClassWeights(self.class_weight, y.tolist())
        weights = _check_sample_weight(sample_weight, y) * whole_weights(self.class_weight, y)
        return self._fit(X, class_codes(self.classes_, y), weights, self._loss())

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, once, in the order given.

        classes : all classes, in the first call; None if they are not known. The model then adds
            classes as they appear. If there are two, naming them gives better probabilities.
        """
        y = _classes(y)
        if not hasattr(self, "model_"):
            self._class_weights = ClassWeights(self.class_weight)
            self._table = ClassTable() if classes is None else None
            if classes is not None:
                self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"classes must be {self.classes_}, as in the first call (got {classes!r})"
            )
        labels, table = y.tolist(), self._table
        weights = _check_sample_weight(sample_weight, y) * self._class_weights.of(labels)
        codes = class_codes(self.classes_, y) if table is None else np.array(table.encode(labels))
        self._learn(X, codes, weights, self._loss())
        self._class_weights.add(labels)
        if table is not None:
            table.add(labels)
            self.classes_ = np.unique(np.array(table.labels))
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores of all classes; for two classes, the score of the second only.

        The score of the second class is positive where it is more probable.
        """
        return self._in_order(self._predict(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        return self._most_probable(self._in_order(self._predict(X)))

    @available_if(_estimates_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, in the order of ``classes_``."""
        return probabilities(self._in_order(self._predict(X)))

    @available_if(_estimates_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities of the classes."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(_one_booster)
    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield the predictions of the first copy, of the first two copies, and so on."""
        for scores in self._staged_predictions(X):
            yield self._most_probable(self._in_order(scores))

    def _in_order(self, scores: Array) -> Array:
        """Return the scores of the classes in the order of ``classes_``; for two, of the second."""
        table = self._table
        return scores if table is None else table.select(scores, self.classes_.tolist())

    def _loss(self) -> Any:
        loss = named_loss(self.loss, CLASSIFICATION)
        if self._table is not None:
            if loss is not None:
                raise ValueError(f"loss={self.loss!r} needs classes in the first partial_fit")
            return "softmax"
        number = len(self.classes_)
        if loss is not None and number > 2:
            raise ValueError(f"loss={self.loss!r} supports two classes only (got {number})")
        return loss or (Logistic() if number == 2 else Softmax(number))

    def _most_probable(self, scores: Array) -> Array:
        best = scores.argmax(axis=1) if scores.ndim > 1 else (scores > 0).astype(int)
        return np.asarray(self.classes_[best])


def _labels(y: Any, **kind: Any) -> Array:
    """Return labels as an array [rows]."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return column_or_1d(y, warn=True, **kind)


def _classes(y: Any) -> Array:
    y = _labels(y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y
