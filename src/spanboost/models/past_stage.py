"""The last stage of AutoBoost: corrects its forecast by the labels and errors of earlier rows.

The forecast of the experts, which do not see past labels, comes first. This stage has candidates of
its own: that forecast, the last label, the label one season ago, two decayed means, and corrections
of the forecast by two linear functions and by boosted trees. The corrections read the forecast, the
past labels relative to it, and its past errors; two of them also read the row. A second `Mixture`
combines the candidates. So a stream whose order means nothing keeps the forecast of the experts.

Corrections are learned in the model's units: their target is the label minus the forecast. For
logistic loss, where that has no meaning, they predict log-odds themselves, from the same columns.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import Caller
from spanboost.core.loop import predict
from spanboost.errors import ModelFileError
from spanboost.learners.ridge import Ridge
from spanboost.learners.trees import Trees
from spanboost.losses import Absolute, Huber, Logistic, Quantile, Squared, degree, resolve
from spanboost.models.booster import Booster, HullBoost, SpanBoost
from spanboost.models.booster_core import BoosterCore
from spanboost.models.known_past import KnownPast, ReadsPast
from spanboost.models.members import members_header, members_tensors, restore_members
from spanboost.models.mixture import Mixture, Units
from spanboost.models.past_row import LARGEST, MEAN, SETTLED, SLOW, to_log_odds, to_probability
from spanboost.models.sleeping import PERIOD, add_corrections, new_sleep
from spanboost.models.spec import score_bounds
from spanboost.models.state import leaves
from spanboost.models.wrapper import fill_arrays
from spanboost.rows.block import prepend_columns
from spanboost.rows.encoder import EncodedBlock, NumberedBlock
from spanboost.rows.labels import RangeChange
from spanboost.rows.past_labels import LAGS, LEVELS, learn_past, new_past_labels

_LOSSES = (Squared, Absolute, Huber, Quantile, Logistic)
LEAST_BITS = 6  # a hashed table with fewer bits has no room for the columns of this stage
LAST, SEASON = 0, LAGS  # levels that are candidates themselves, with two means
NAMES = ("experts", "last label", "last season", "recent mean", "mean")
KEY_NAMES = ("last label of the key", "recent mean of the key")
CORRECTIONS = ("past", "past and row", "trees of past and row")
_STATE, _SLEEP = "labels", "sleep"


class StageRows(NamedTuple):
    """Rows that the experts have predicted."""

    encoded: Any  # as the experts read them
    forecasts: Array  # [rows] of the experts, in the units of the labels, or log-odds; scores of
    # classes are [rows, d]
    units: Units  # before the first row


class StageLabels(NamedTuple):
    """The labels of these rows."""

    learned: Array  # [rows, 1] as they are learned, in the units of the user
    labels: Array  # [rows, 1] as the mixture scores them
    weights: Array  # [rows]
    changes: list[RangeChange]


class Frames(NamedTuple):
    """The label range of each row, as half-widths and centres."""

    half: Array  # [rows] when it is predicted
    learned_half: Array  # [rows] when it is learned; 1 if the range has no width
    learned_centre: Array  # [rows]


class PastStage(ReadsPast):
    """Past labels, the corrections that read them, and the weights of all candidates.

    state: the labels and errors so far; sleep: whether the trees learn.
    """

    def __init__(self, loss: Any, seed: int, bits: int | None, key: Any) -> None:
        self.loss, self.key, keyed = resolve(loss), key, key is not None
        self.direct = isinstance(self.loss, Logistic)
        self.state, self.sleep = new_past_labels(keyed), new_sleep()
        self.names = NAMES + (KEY_NAMES if keyed else ()) + CORRECTIONS
        self.mixture = Mixture(self.loss, len(self.names))
        self.call = Caller()
        self._set_boosters(list(_new_boosters(self.loss, seed, bits)))

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each candidate."""
        return self.mixture.named_weights(self.names)

    def predict(self, rows: StageRows, known: KnownPast) -> Array:
        """Return predictions; learn nothing."""
        number, asleep = len(rows.forecasts), not self.sleep.awake
        past = known.fill(self.read_past(known.keys))
        outs = []
        for core, block in zip(self.cores, self._encode(rows, past), strict=True):
            out = np.zeros((number, 1), core.dtype)
            core.call(predict, core.prepare(block, 0), block.rows, out, 0, number)
            outs.append(out[:, 0].astype(np.float64))
        if asleep:
            outs[-1] = self._neutral(rows.forecasts)
        half = np.full(number, rows.units.half)
        return self.mixture.combine(rows.units, self._candidates(rows, past, outs, half))

    def learn(self, rows: StageRows, known: KnownPast, given: StageLabels) -> Array:
        """Learn rows, in order; return the predictions, each made before its label was seen."""
        forecasts = rows.forecasts
        labels = (given.labels if self.direct else given.learned)[:, 0].astype(np.float64)
        errors = labels - forecasts
        if self.direct:
            errors = (1 + labels) / 2 - to_probability(forecasts)
        keys, has_past = known.keys, known.given
        learned = given._replace(weights=self._settled(given.weights))
        past = known.fill(np.empty((len(labels), self.state.columns)))
        arrays = keys, labels, errors, given.weights, has_past, past
        self.call(learn_past, self.state, *arrays)
        blocks = self._encode(rows, past)
        for core, block in zip(self.cores, blocks, strict=True):
            core.accept(block)
        frames = label_frames(rows.units, given.changes, len(labels))
        targets = given.labels
        if not self.direct:
            scaled = (forecasts - frames.learned_centre) / frames.learned_half
            targets = np.clip(targets - scaled[:, None], -1, 1)
            errors = np.ascontiguousarray(targets[:, 0])
        runs = [
            CoreRun(core, block, targets, learned, rows.units.half, degree(self.loss) - 1)
            for core, block in zip(self.cores, blocks, strict=True)
        ]
        outs = self._learn_corrections(runs, errors, rows, given.weights)
        candidates = self._candidates(rows, past, outs, frames.half)
        mixed = given.labels, given.weights, given.changes
        return self.mixture.learn(rows.units, candidates, *mixed)

    def _settled(self, weights: Array) -> Array:
        """Return the weights with which corrections learn rows: 0 for the first labels."""
        before = self.state.seen[0] + np.cumsum(weights > 0) - (weights > 0)
        return np.where(before < SETTLED, 0, weights)

    def _learn_corrections(
        self, runs: list["CoreRun"], errors: Array, rows: StageRows, weights: Array
    ) -> list[Array]:
        """Learn the corrections; return what each of them predicts, in the model's units."""
        number, (*linear, trees) = len(errors), runs
        for each in linear:
            each.learn(0, number)
        neutral = self._neutral(rows.forecasts)
        others = linear[-1].predictions - neutral
        labelled = np.cumsum(weights > 0)
        first = 0
        while first < number:
            last = _next_decision(labelled, int(self.sleep.seen[0]), first)
            if self.sleep.awake:
                trees.learn(first, last)
            else:
                trees.skip(first, last)
                trees.out[first:last, 0] = neutral[first:last]
            own = trees.predictions - neutral
            self.call(add_corrections, self.sleep, errors, others, own, weights, first, last)
            first = last
        return [*(each.predictions for each in linear), trees.predictions]

    def _neutral(self, forecasts: Array) -> Array:
        """Return the predictions, in the model's units, that correct nothing."""
        return forecasts if self.direct else np.zeros(len(forecasts))

    def _encode(self, rows: StageRows, past: Array) -> list[EncodedBlock]:
        """Return the columns of the past alone, and twice with the columns of the row."""
        levels = self.state.levels
        own = rows.forecasts[:, None]
        centre, relative = (0.0, 0.0) if self.direct else (past[:, SLOW : SLOW + 1], own)
        columns = [own - centre, past[:, :levels] - relative, past[:, levels:]]
        context = np.clip(np.hstack(columns), -LARGEST, LARGEST).astype(np.float32)
        alone, together = prepend_columns(context), prepend_columns(context, rows.encoded)
        return [
            core.encoder.read(NumberedBlock(block, len(past), False, {}))
            for core, block in zip(self.cores, (alone, together, together), strict=True)
        ]

    def _candidates(self, rows: StageRows, past: Array, outs: list[Array], half: Array) -> Array:
        """Return the forecasts of all candidates, [rows, 1, K]."""
        own = rows.forecasts[:, None]
        places = [LAST, SEASON, MEAN, MEAN + 1]
        levels = past[:, places + ([LEVELS, LEVELS + LAGS] if self.key is not None else [])]
        levels[:, 1] = np.where(np.isnan(levels[:, 1]), levels[:, 0], levels[:, 1])
        corrected = np.stack(outs, axis=1)
        if self.direct:
            levels = to_log_odds(levels)
        else:
            corrected = own + half[:, None] * corrected
        levels = np.where(np.isnan(levels), own, levels)
        return np.hstack([own, levels, corrected])[:, None, :]

    def _set_boosters(self, boosters: list[Booster]) -> None:
        """Set the boosters of the corrections, in the order of their names."""
        self.boosters = boosters
        self.cores = [booster.core for booster in boosters]
        for core in self.cores:
            core.sample = None  # the experts keep a sample of the rows

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        return {"corrections": members_header(self.boosters)}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a stage that has learned, by name."""
        yield from self.mixture.tensors()
        for part, name in ((self.state, _STATE), (self.sleep, _SLEEP)):
            for path, value, _ in leaves(part, name):
                yield path, value
        yield from members_tensors(self.boosters)

    def restore(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Set the state to that of a header and arrays; a `ModelFileError` if they do not match."""
        boosters = restore_members(header["corrections"], _take_numbered(tensors))
        made = [(type(one), one.learner, one.loss) for one in self.boosters]
        if made != [(type(one), one.learner, one.loss) for one in boosters]:
            raise ModelFileError("the corrections by past labels in the file are not known")
        self._set_boosters(boosters)
        if not tensors and not self.cores[0].started:
            return
        for part, name in ((self.state, _STATE), (self.sleep, _SLEEP)):
            fill_arrays(part, take_prefixed(tensors, f"{name}."), name)
        if not (self.state.sound and self.sleep.sound):
            raise ModelFileError("the past labels in the file are invalid")
        self.mixture.restore_last(tensors)


class CoreRun:
    """Runs a core over the rows of a block, and follows the changes of the label range.

    A row that changes the range is predicted in the old range, and learned in the new one.
    """

    def __init__(
        self,
        core: BoosterCore,
        block: EncodedBlock,
        targets: Array,
        given: StageLabels,
        half: float,
        power: float,
    ) -> None:
        self.core, self.rows, self.changes = core, block.rows, given.changes
        self.targets = np.ascontiguousarray(targets, core.dtype)
        self.weights = given.weights.astype(core.dtype)
        self.half, self.power = half, power
        self.out = np.zeros((len(targets), 1), core.dtype)

    @property
    def predictions(self) -> Array:
        """The predictions so far, in the model's units."""
        return self.out[:, 0].astype(np.float64)

    def learn(self, first: int, last: int) -> None:
        """Predict and learn the rows first <= t < last."""
        predicted: dict[int, float] = {}
        for change in self.changes:
            if first <= change.row < last:
                self._run(first, change.row, self.weights)
                self._run(change.row, change.row + 1, 0 * self.weights)
                predicted.setdefault(change.row, self.out[change.row, 0])
                self._change(change)
                first = change.row
        self._run(first, last, self.weights)
        for row, value in predicted.items():
            self.out[row, 0] = value

    def skip(self, first: int, last: int) -> None:
        """Follow the changes of the label range in these rows, and learn nothing."""
        for change in self.changes:
            if first <= change.row < last:
                self._change(change)

    def _run(self, first: int, last: int, weights: Array) -> None:
        self.core.learn_rows(self.rows, self.targets, weights, self.out, first, last)

    def _change(self, change: RangeChange) -> None:
        if change.exact:
            part = self.half / change.half if self.half > 0 else 0.0
            self.core.state.bank.rescale(part, part**self.power)
        self.half = change.half


def _new_boosters(loss: Any, seed: int, bits: int | None) -> Iterator[Booster]:
    """Yield the boosters of the corrections."""
    single, boosted = score_bounds(loss, "single"), score_bounds(loss, "boosted")
    dtype = np.float32  # as the experts
    yield HullBoost(Ridge(dtype=dtype), n=1, loss=loss, seed=seed, **single)
    yield HullBoost(Ridge(bits=bits, dtype=dtype), n=1, loss=loss, seed=seed, **single)
    yield SpanBoost(Trees(bits=bits), n=50, eta=0.15, loss=loss, seed=seed, **boosted)


def label_frames(units: Units, changes: list[RangeChange], rows: int) -> Frames:
    """Return the label range of each row of a block."""
    half, learned_half = np.full(rows, units.half), np.full(rows, units.half)
    centre = np.full(rows, np.reshape(units.centre, -1)[0])
    for change in changes:
        half[change.row + 1 :] = change.half
        learned_half[change.row :] = change.half
        centre[change.row :] = np.reshape(change.centre, -1)[0]
    return Frames(half, np.where(learned_half > 0, learned_half, 1.0), centre)


def _next_decision(labelled: Array, count: int, first: int) -> int:
    """Return the row after the one with which the next period of labels ends, or the last row.

    labelled: [rows] how many rows of the block, up to this one, have a label to learn.
    """
    before = int(labelled[first - 1]) if first else 0
    missing = PERIOD - count % PERIOD
    end = int(np.searchsorted(labelled, before + missing)) + 1
    return min(end, len(labelled))


def can_correct(loss: Any) -> bool:
    """Return whether a stage can correct numbers that are predicted for this loss."""
    return isinstance(resolve(loss), _LOSSES)


def _take_numbered(tensors: dict[str, Array]) -> dict[str, Array]:
    """Remove the arrays of members and return them."""
    return {name: tensors.pop(name) for name in list(tensors) if name[:1].isdigit()}


def take_prefixed(tensors: dict[str, Array], prefix: str) -> dict[str, Array]:
    """Remove the arrays with a prefix and return them without it."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}
