"""The interface of all models: boosters, AutoBoost and committees.

Files and the service use only this interface. Explanations, importances, plots of stages,
`inspect`, tuning and averaging also read the `core` of single boosters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from numpy.typing import ArrayLike

from spanboost.compiling.arrays import Array
from spanboost.compiling.rehearsal import rehearsed
from spanboost.data.table_names import apply_schema
from spanboost.learners.text import call_text
from spanboost.models.health import Health, describe, health_of
from spanboost.models.html import model_html
from spanboost.models.loss_record import AverageLoss
from spanboost.models.one_at_a_time import OneAtATime, copy_deeply, share_state
from spanboost.models.pickling import reduce_model
from spanboost.models.rehearsal import rehearse
from spanboost.rows.encoder import RowEncoder
from spanboost.rows.label_ends import LabelEnds
from spanboost.rows.labels import LabelHealth, Labels
from spanboost.rows.row_sample import RowSample
from spanboost.rows.user_types import LabelLike, RowLike, RowsLike

if TYPE_CHECKING:
    from spanboost.models.booster import Booster


T = TypeVar("T")


class Composition(NamedTuple):
    """How the prediction for one row is composed of the predictions of a model's parts."""

    prediction: Array  # [d]
    weights: Array  # [parts] the weight of each part
    constant: Any  # added to the weighted sum


_OF_SKLEARN = "or the estimators of spanboost.sklearn"
_METHODS = {  # what scikit-learn calls the methods
    **dict.fromkeys(("fit", "partial_fit"), f"; use learn_many(X, y), {_OF_SKLEARN}"),
    "predict": f"; use predict_many(X), {_OF_SKLEARN}",
    "predict_proba": "; use BoostingClassifier of spanboost.sklearn or spanboost.river",
}


class Model(OneAtATime):
    """The interface of all models, with the methods that they share."""

    served = frozenset(
        [
            *("check", "learn_one", "learn_many", "learn_checked", "learn_again", "learn_held_out"),
            *("learn_scaled", "learn_both", "learn_sets", "held_out_errors", "calibrate"),
            *("predict_one", "predict_many", "predict_both", "forecasts", "corrections"),
            *("with_past", "weights_", "health"),
        ]
    )
    loss_: Any
    threads: int | None = None  # number of threads to use; None: one for each processor
    has_experts: ClassVar[bool] = False  # whether the parts can learn on different machines
    why_not_covered: ClassVar[str | None] = None  # why the paper's theorems do not cover it

    if not TYPE_CHECKING:  # for a type checker, a model would have every attribute

        def __getattr__(self, name: str) -> Any:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(text + _METHODS.get(name, ""), name=name, obj=self)

    @property
    def schema(self) -> Any:
        """How to read files for this model (data/schema.py); None if it learned from arrays."""
        return vars(self).get("schema")

    @schema.setter
    def schema(self, schema: Any) -> None:
        self._set_schema(schema)

    def _set_schema(self, schema: Any) -> None:
        vars(self)["schema"] = schema
        for encoder in self.encoders():
            apply_schema(encoder, schema)

    @property
    def parts(self) -> Mapping[str, Booster]:
        """The boosters that the model consists of, by name; empty for a booster."""
        return {}

    def boosters(self) -> list[Booster]:
        """Return the boosters of the model: its parts, or the model itself."""
        return list(self.parts.values()) or [self.as_booster()]

    def stored_boosters(self) -> list[Booster]:
        """Return all boosters that take memory; some may not contribute to predictions."""
        return self.boosters()

    @property
    def labels(self) -> Labels:
        """The label range so far, and how many rows were seen."""
        raise NotImplementedError

    @property
    def label_ends(self) -> LabelEnds | None:
        """The smallest and the largest label learned so far; None if they are unknown."""
        return self.labels.ends

    @property
    def label_health(self) -> LabelHealth:
        """Facts about the labels so far: how many were clipped, and when their range changed."""
        return self.labels.health

    @property
    def health(self) -> Health:
        """Clipped labels, changes of the label range, weights, and NaN in the state.

        Counting the NaN reads the whole state; `label_health` takes no time.
        """
        return health_of(self)

    @property
    def encoder(self) -> RowEncoder:
        """The encoder of rows, with their kind and the names of features."""
        raise NotImplementedError

    def encoders(self) -> list[RowEncoder]:
        """Return the encoders of all boosters; those of one model may read different rows."""
        return [booster.core.encoder for booster in self.boosters()]

    @property
    def started(self) -> bool:
        """Whether the model has seen a row."""
        raise NotImplementedError

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each part by name; empty if the parts have no weights."""
        return {}

    @property
    def losses_(self) -> dict[str, float]:
        """The average loss of each part so far by name; empty if it is not recorded."""
        return {}

    @property
    def uncalibrated(self) -> Model:
        """The model whose probabilities are calibrated; the model itself without calibration."""
        return self

    @property
    def average_loss(self) -> AverageLoss | None:
        """The average loss so far; None if it is not recorded, or there are no rows yet."""
        return None

    @property
    def sigma_(self) -> Array | None:
        """The current shrinkage of every copy; None unless the model runs Algorithm 1."""
        return None

    def check(self, X: Any, y: Any, weights: Any = None) -> Any:
        """Return the block as `learn_checked` takes it; a `DataError` names the first bad row."""
        raise NotImplementedError

    def learn_checked(self, block: Any) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        raise NotImplementedError

    def predict_many(self, X: RowsLike) -> Array:
        """Return predictions for a block of rows; learn nothing."""
        raise NotImplementedError

    def learn_many(self, X: RowsLike, y: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Learn a block of rows, in order; return the predictions, each made before its label.

        The whole block is checked first. If a row is invalid, a `DataError` names the first bad row
        and no row is learned. If a learner of your own raises an error, a note of the error has the
        number of the row: the rows before it, and part of it, have been learned. A row of weight 0
        is predicted but not learned.
        """
        with rehearsed(lambda: rehearse(self, X, y)):
            return self.learn_checked(self.check(X, y, weights))

    def learn_again(self, X: RowsLike, y: ArrayLike, weights: ArrayLike | None = None) -> Array:
        """Learn a block of rows that the model has learned before, in a further pass.

        The rows are no longer unseen, so weights of experts or candidates do not change.
        """
        return self.learn_many(X, y, weights)

    def learn_held_out(
        self,
        X: RowsLike,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        forecasts: Array | None = None,
    ) -> Array:
        """Learn a block of rows that all passes before have left out; calibrate intervals and sets.

        forecasts: predictions of these rows, for the calibration; None are those of the model.
        """
        return self.learn_many(X, y, weights)

    def predict_one(self, x: RowLike) -> float | Array:
        """Return the prediction for one row: a number, or a vector of R^d."""
        return single_answer(self.predict_many([x]))

    def learn_one(self, x: RowLike, y: LabelLike, weight: float = 1.0) -> float | Array:
        """Learn one row; return the prediction made before the label was seen."""
        return single_answer(self.learn_many([x], [y], [weight]))

    def without_past(self) -> Self:
        """Return a model that predicts without past labels; most models use none."""
        return self

    def without_corrections(self) -> Self:
        """Return a model that predicts without past labels and recent rows."""
        return self

    def corrections(self, X: RowsLike) -> Array | float:
        """Return what recent rows and past labels add to the predictions of a block."""
        return 0.0

    def as_booster(self) -> Booster:
        """Return the model if it is a single booster; raise a ValueError if it has several."""
        raise ValueError(f"this needs a single booster, but {self!r} consists of several")

    def compose(self, predictions: Sequence[Array]) -> Composition:
        """Return how the predictions [1, d] of the parts compose the prediction for one row."""
        raise NotImplementedError

    @property
    def needs_new_rows(self) -> bool:
        """Whether rows that were not learned before must come last, after several passes.

        The share of labels below a quantile is measured on such rows.
        """
        return False

    @property
    def row_sample(self) -> RowSample | None:
        """Some of the rows that the model has learned; None if only its parts keep rows."""
        return None

    def parameters(self) -> dict[str, Any]:
        """Return the class ("booster") and the parameters of the model, as JSON."""
        raise NotImplementedError

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        raise NotImplementedError

    def own_facts(self) -> dict[str, str]:
        """Return what notebooks and `inspect` show of this kind of model only, as text."""
        return {}

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        raise NotImplementedError

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a model that has started, by name."""
        raise NotImplementedError

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the model from a header and arrays; a `ModelFileError` if they do not match."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the bytes of the model's file, if it holds everything."""
        return reduce_model(self) or super().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy all attributes; a detour through a file would take longer."""
        double = object.__new__(type(self))
        memo[id(self)] = double
        double.__setstate__(copy_deeply(self, memo))
        return double

    def __copy__(self) -> Self:
        double = object.__new__(type(self))
        double.__setstate__(share_state(self, double))
        return double

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def call_text(self) -> str:
        """Return the call that creates such a model, as Python source."""
        return call_text(self)

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return model_html(self)


def require_model(given: Any, what: str) -> Model:
    """Return the model; raise a TypeError if this is not a model of this package."""
    if isinstance(given, Model):
        return given
    kind, advice = repr(type(given).__name__), ""
    if hasattr(given, "to_parts"):
        kind = "an estimator"
        advice = "; scikit-learn has cross_validate and River has progressive_val_score"
    elif hasattr(given, "steps"):
        kind, advice = "a pipeline", "; give its last step"
    needed = "a model such as AutoBoost() or SpanBoost(Trees())"
    raise TypeError(f"{what} needs {needed} (got {kind}){advice}")


def single_answer(answers: Array) -> Any:
    """Return the only prediction of a block of one row: a float, or a vector."""
    return answers[0] if answers.ndim > 1 else answers.item()
