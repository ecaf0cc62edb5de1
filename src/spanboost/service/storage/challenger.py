"""A challenger: a second model that learns the same journal in the shadow of the first.

Both models predict each row before they learn it. A confidence sequence compares their losses; its
intervals are valid after every row, so the comparison may be looked at and stopped at any time.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from spanboost.analysis.comparison import Comparison, same_loss
from spanboost.checks import finite_or_none
from spanboost.compiling.arrays import Array
from spanboost.data.schema import Schema, schema_from_json
from spanboost.errors import UsageError, UserError, did_you_mean
from spanboost.learners.ball import LinearBall
from spanboost.models.compact import is_compact
from spanboost.models.files import from_bytes
from spanboost.models.model import Model
from spanboost.models.model_spec import (
    LEARNERS,
    ModelSpec,
    model_options,
    single_booster_parameters,
)
from spanboost.service.request_rows import Row, find_invalid_labels, learning_batches
from spanboost.service.storage.control import CHALLENGE, Control, control_with_model
from spanboost.service.storage.row_learning import learn_batch
from spanboost.service.storage.row_past import uses_past

BY_HAND, WHEN_BETTER = "by-hand", "when-better"
RULES = (BY_HAND, WHEN_BETTER)


class Challenger:
    """The model of the challenger and its comparison with the champion, the model that predicts."""

    def __init__(self, model: Model, rule: str, record: int) -> None:
        """Begin a comparison; `record` is the number of the control that began it."""
        self.model, self.rule, self.record = model, rule, record
        self.left_out = 0  # rows that only one of the models could learn; they are not compared
        self.comparison = Comparison()

    @property
    def better(self) -> bool:
        """Whether its loss is lower, and the whole interval of the difference says so."""
        return self.comparison.better == "second"

    def learn(
        self,
        rows: Sequence[Row],
        labels: Sequence[float | str],
        weights: Array | None,
        losses: Array,
    ) -> None:
        """Learn a block of rows; `losses`: of the champion, NaN for rows that it did not learn."""
        for batch in learning_batches(self.model.schema, rows, labels, weights):
            learned = np.zeros(len(rows), np.bool_)
            for part in learn_batch(self.model, batch):
                learned[part.positions] = True
                champion = losses[part.positions]
                both = ~np.isnan(champion)
                own = part.losses(self.model)
                self.comparison.add(champion[both], own[both], part.weights[both])
            here = np.zeros(len(rows), np.bool_)
            here[batch.lines] = True
            self.left_out += int((here & (learned == np.isnan(losses))).sum())

    def restart(self) -> None:
        """Begin the comparison again, because the champion is another model now."""
        self.comparison, self.left_out = Comparison(), 0

    def state(self) -> dict[str, Any]:
        """Return everything but the model, as JSON values."""
        return {
            "rule": self.rule,
            "record": self.record,
            "left_out": self.left_out,
            "comparison": self.comparison.state(),
        }

    def describe(self) -> dict[str, Any]:
        """Return the comparison for people and monitoring, as JSON values."""
        comparison = self.comparison
        champion, own = map(finite_or_none, comparison.losses)
        return {
            "model": repr(self.model),
            "promote": self.rule,
            "record": self.record,
            "rows": comparison.rows,
            "champion_loss": champion,
            "challenger_loss": own,
            "difference": finite_or_none(comparison.difference),
            "interval": list(map(finite_or_none, comparison.interval)),
            "better": {"first": "champion", "second": "challenger"}.get(comparison.better or ""),
            "left_out": self.left_out,
        }


def restore_challenger(state: dict[str, Any], data: bytes) -> Challenger:
    """Return the challenger of a snapshot; `data`: the bytes of its model."""
    challenger = Challenger(from_bytes(data), state["rule"], state["record"])
    challenger.left_out = state["left_out"]
    challenger.comparison = Comparison(state=state["comparison"])
    return challenger


def challenge_with(champion: Model, model: Model, rule: str) -> Control:
    """Return the control that begins a challenge; UserError if the models cannot be compared."""
    if uses_past(champion):
        raise UserError(
            "a model that uses past labels (--past, --key) cannot be challenged: rows are stored "
            "with the past of this model only"
        )
    if is_compact(model):
        raise UserError("a compact model cannot learn; challenge with the full model")
    _check_comparable(champion, model)
    return control_with_model(CHALLENGE, {"rule": rule}, model)


def model_from_options(champion: Model, options: dict[str, Any]) -> Model:
    """Return a new model with options like those of `spanboost train`, for the champion's rows."""
    allowed = {*model_options(), "classes"}
    unknown = [name for name in options if name not in allowed]
    if unknown:
        raise UsageError(
            f"unknown option {unknown[0]!r:.40}; expected {', '.join(sorted(allowed))}"
            f"{did_you_mean(unknown[0][:40], allowed)}"
        )
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    if "learner" not in given and any(name in given for name in single_booster_parameters()):
        given["learner"] = "trees"
    if given.get("learner", "auto") not in ("auto", *LEARNERS):
        name = given["learner"]
        hint = did_you_mean(name, ("auto", *LEARNERS))
        raise UsageError(f"unknown learner {name!r:.40}{hint}")
    try:
        spec = ModelSpec().replace(**given)
        model = spec.build()
    except (ValueError, TypeError) as error:
        raise UsageError(f"invalid options: {error}") from None
    model.schema = schema_from_json(deepcopy(champion.schema.state()))
    model.schema.bits = spec.bits
    return model


def _check_comparable(champion: Model, model: Model) -> None:
    if model.schema is None:
        raise UserError(
            "the model was trained in Python and does not know the columns of rows; train it with "
            "`spanboost train` or `serve`"
        )
    if isinstance(getattr(model, "learner", None), LinearBall):
        raise UserError("a model with --learner ball cannot be served")
    if not same_loss(champion, model):
        raise UserError("the challenger has another loss; train it with the loss of the service")
    ours, theirs = _reading(champion.schema), _reading(model.schema)
    different = [name for name in ours if ours[name] != theirs[name]]
    if different:
        raise UserError(
            f"the challenger reads rows in another way than the service: its {different[0]} is "
            f"{theirs[different[0]]!r:.60}; expected {ours[different[0]]!r:.60}"
        )
    target = deepcopy(model.schema.target)
    wrong = find_invalid_labels(target, list(champion.schema.target.values))
    if wrong:
        raise UserError(f"the challenger does not know a label of the service: {wrong[0]}")


def _reading(schema: Schema) -> dict[str, Any]:
    """Return how a schema reads the rows of requests."""
    columns = schema.columns
    return {
        "label": schema.label or "label",
        "weight": schema.weight,
        "ignored columns": sorted(schema.ignore),
        "reading of times": list(schema.time_features) or "categories",
        "columns": columns and [(one.name, one.category, one.time) for one in columns],
        "target": {k: v for k, v in schema.target.state().items() if k != "values"},
    }
