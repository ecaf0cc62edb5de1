"""The base class of the estimators for scikit-learn: fitting, predicting, saving, explaining."""

import copy
import pickle
from functools import partial
from textwrap import indent
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
)

from spanboost.analysis.explanations import ExplainedRows
from spanboost.analysis.importances import column_importances
from spanboost.analysis.partial_sums import partial_predictions
from spanboost.analysis.passes import Examples, Passes
from spanboost.analysis.user_columns import feature_name
from spanboost.compiling.arrays import Array
from spanboost.data.estimator_rows import EstimatorRows
from spanboost.losses import Loss
from spanboost.models.estimator_files import EstimatorParts
from spanboost.models.estimators import new_model
from spanboost.models.model import Model
from spanboost.models.model_spec import AUTO
from spanboost.models.one_at_a_time import OneAtATime
from spanboost.models.targets import TargetModels, check_targets, join_targets, models_of
from spanboost.rows.user_types import LearnerLike
from spanboost.rows.weights import relative_weights

T = TypeVar("T")

NAMES = {  # parameters of ModelSpec, and what scikit-learn calls them
    "learner": "learner",
    "booster": "booster",
    "n": "n_estimators",
    "step": "learning_rate",
    "budget": "budget",
    "recent": "recent",
}
FITTING: dict[str, Any] = {
    "n_epochs": AUTO,
    "shuffle": True,
    "warm_start": False,
    "n_jobs": -1,
    "verbose": 0,
    "random_state": None,
}
_SHARED_PARAMETERS = """\
learner : str or object
    The learner to boost: "auto", "trees", "linear", "stumps", "stumps-intercept", "network",
    "ridge" or "ball", or an object. The default, "auto", runs many boosters at once and needs no
    tuning. An object is a learner of this library with its parameters, such as ``Trees(depth=4)``,
    or your own learner: see docs/bring-your-own.md.
booster : "span" or "hull"
    Algorithm 1 or Algorithm 2.
n_estimators : int, "auto" or None
    Number of copies of the learner. "auto" chooses it from the stream
    (docs/online-choice.md). None is "auto" for your own learner, 100 for
    trees, 1 for ridge, else 32.
learning_rate : float, "auto" or None
    The step eta of Algorithm 1, from 1 / n_estimators to 1. None is ln(n) / n; "auto" chooses
    it from the stream.
budget : "fast", "default", "thorough" or "exhaustive"
    Size of learner="auto": more boosters, lower error, more time. Other learners ignore it, so
    that a search can try several learners.
recent : bool or None
    Whether learner="auto" corrects its predictions by the last 1,000 rows that it has learned, to
    follow drift (docs/drift.md). None: if ``partial_fit`` creates the model, with all budgets
    except "fast". ``fit`` shuffles the rows and reads them several times, so there is no drift.
replay : int
    Number of earlier rows to learn again after each row: lower error, more time.
memory : int
    Number of recent rows that ``replay`` draws from.
replay_weight : float
    Factor on the importance weight of replayed rows, from 0.001 to 1.
n_epochs : "auto" or int
    Number of passes over the data in ``fit``. "auto" holds out a tenth of the rows (at least
    100, at most a quarter), adds passes over the others while each lowers the loss of the
    held-out rows by 1 %, up to ten, and learns the held-out rows at the end. With more than
    100,000 rows, it is one pass.
shuffle : bool
    Whether each pass of ``fit`` shuffles the rows. ``partial_fit`` keeps their order.
warm_start : bool
    Whether ``fit`` continues with the model of the calls before instead of a new one.
n_jobs : int or None
    Number of threads of learner="auto": -1 is all processors; None is 1, or what joblib's
    ``parallel_config`` says. The model does not depend on it.
verbose : int
    Whether ``fit`` prints a line for each pass.
random_state : int, RandomState instance or None
    Random seed of the shuffling and of the learner."""
_ATTRIBUTES = {"n_features_in_", "feature_names_in_", "n_epochs_"}  # in files


def with_shared_parameters(cls: type[T]) -> type[T]:
    """Insert the parameters of all estimators into the docstring of one of them."""
    shared = indent(_SHARED_PARAMETERS, "    ").lstrip()
    cls.__doc__ = (cls.__doc__ or "").replace("{shared_parameters}", shared)
    return cls


class BoostingEstimator(OneAtATime, BaseEstimator):
    """Base class of the regressor and the classifier.

    names: parameters of `ModelSpec`, and what the estimator calls them.
    """

    served = frozenset({"fit", "partial_fit", "decision_function", "predict"})
    names: ClassVar = NAMES
    learner: LearnerLike
    loss: str | Loss
    recent: bool | None
    n_epochs: int | str
    shuffle: bool
    warm_start: bool
    n_jobs: int | None
    verbose: int
    random_state: int | np.random.RandomState | None
    n_features_in_: int
    n_epochs_: Any
    model_: Any
    _reader: EstimatorRows

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

    def to_parts(self) -> EstimatorParts:
        """Return the fitted estimator as data, for ``spanboost.save``."""
        check_is_fitted(self, "model_")
        state = {
            "parameters": self.get_params(deep=False),
            "attributes": {name: vars(self)[name] for name in _ATTRIBUTES if hasattr(self, name)},
            "reader": self._reader.state(),
            "several": isinstance(self.model_, TargetModels),
        }
        name, table = f"sklearn.{type(self).__name__}", self._reader.table_form(self)
        return EstimatorParts(name, state, models_of(self.model_), table=table)

    @classmethod
    def from_parts(cls, parts: EstimatorParts) -> Self:
        """Return the estimator that `to_parts` described."""
        estimator, state = cls(**parts.state["parameters"]), parts.state
        for name in _ATTRIBUTES & state["attributes"].keys():
            setattr(estimator, name, state["attributes"][name])
        estimator.model_ = join_targets(parts.models, state["several"])
        estimator._reader = EstimatorRows.restore(state["reader"])
        return estimator

    def explained_rows(self, x: Any) -> ExplainedRows:
        """Return how ``spanboost.explain`` explains the prediction for one row."""
        check_is_fitted(self, "model_")
        several = isinstance(self.model_, TargetModels)
        rows, models = self._reader.read_one(self, x), models_of(self.model_)
        return ExplainedRows(models, rows, partial(self._reader.feature_name, self), several)

    @property
    def feature_importances_(self) -> Array:
        """Permutation importances on a sample of the training rows (`feature_importances`).

        For several targets, they are the averages.
        """
        check_is_fitted(self, "model_")
        shares, models = np.zeros(self.n_features_in_), models_of(self.model_)
        for model in models:
            found = column_importances(model, lambda one: self._reader.column(feature_name(one)))
            for column, share in found.items():
                shares[column] += share / len(models)
        return shares

    def _fit(self, X: Any, y: Array, sample_weight: Any, loss: Any) -> Self:
        """Train a model in several passes, each in its own order if `shuffle` is set."""
        reader, rows, weights = self._rows(X, y, sample_weight, first=not self._continues)
        if self._continues:
            check_targets(self.model_, y)
            started = copy.deepcopy(models_of(self.model_))  # an invalid block changes nothing
        pairs = []
        for k, column in enumerate(np.atleast_2d(y.T)):
            random = check_random_state(self.random_state)
            given = loss, random, bool(self.recent)
            model = started[k] if self._continues else self._new_model(*given)
            model.threads = effective_n_jobs(self.n_jobs)
            examples = Examples(rows, column, relative_weights(weights), np.arange(len(y)))
            shuffle = random.permutation if self.shuffle else np.array
            report = print if self.verbose else None
            passes = Passes(examples, shuffle, report, in_order=not self.shuffle)
            pairs.append(passes.learn(model, self.n_epochs))
        models, numbers = zip(*pairs, strict=True)
        self.model_, self._reader = join_targets(models, y.ndim > 1), reader
        self.n_epochs_ = list(numbers) if y.ndim > 1 else numbers[0]
        return self

    @property
    def _continues(self) -> bool:
        """Whether `fit` continues with the model that there is."""
        return bool(self.warm_start) and hasattr(self, "model_")

    def _learn(self, X: Any, y: Array, sample_weight: Any, loss: Any) -> Self:
        """Learn one more block, in the order given."""
        first = not hasattr(self, "model_")
        reader, rows, weights = self._rows(X, y, sample_weight, first=first)
        if first:
            given = loss, self.random_state, self.recent
            new = [self._new_model(*given) for _ in np.atleast_2d(y.T)]
            model = join_targets(new, y.ndim > 1)
        else:
            model = self.model_
            check_targets(model, y)
        model.threads = effective_n_jobs(self.n_jobs)
        model.learn_many(rows, y, weights)
        # set last: an invalid block changes nothing
        self.model_, self._reader = model, reader
        return self

    def _new_model(self, loss: Any, random: Any, recent: bool | None) -> Model:
        seed = int(check_random_state(random).randint(2**31 - 1))
        return new_model(self, self.names, loss=loss, seed=seed, recent=recent)

    def _rows(
        self, X: Any, y: Array, weights: Any, *, first: bool
    ) -> tuple[EstimatorRows, Any, Array]:
        """Return a reader that knows the categories of these rows, checked rows and weights."""
        reader = EstimatorRows.like(X) if first else copy.deepcopy(self._reader)
        if reader.frame is not None and not self._reads_features:
            reader.frame.refuse(self.learner)
        rows = reader.read(self, X, learn=True, reset=first)
        check_consistent_length(X, y)
        return reader, rows, _check_sample_weight(weights, y)

    def _predict(self, X: Any) -> Array:
        rows = self._read(X)
        return np.asarray(self.model_.predict_many(rows))

    def _read(self, X: Any) -> Any:
        """Return rows as the model takes them, and set its number of threads."""
        check_is_fitted(self, "model_")
        rows = self._reader.read(self, X)
        self.model_.threads = effective_n_jobs(self.n_jobs)
        return rows

    def _staged_predictions(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        rows, models = self._reader.read(self, X), models_of(self.model_)
        stages = [partial_predictions(model, rows) for model in models]
        return np.stack(stages, axis=2) if isinstance(self.model_, TargetModels) else stages[0]
