"""Refitted: an estimator of another library, fitted again each time the rows have doubled."""

from collections.abc import Iterator
from typing import Any, NoReturn, Self

import numpy as np

from spanboost import losses
from spanboost.compiling.arrays import Array
from spanboost.compiling.interrupts import finishes
from spanboost.errors import ModelFileError, ParameterError, UserError
from spanboost.learners.batch import BatchLearner
from spanboost.losses import (
    Absolute,
    Huber,
    Logistic,
    PNorm,
    Quantile,
    Softmax,
    Squared,
    has_log_link,
    predicts_scores,
)
from spanboost.models.booster import HullBoost
from spanboost.models.booster_core import CheckedBlock
from spanboost.models.header import parameters_from_json
from spanboost.models.health import describe
from spanboost.models.kept_rows import take_kept
from spanboost.models.model import Model, single_answer
from spanboost.models.refitting.fits import Fit, FitTask, RunningFit
from spanboost.models.refitting.libraries import (
    DEFAULT,
    NAMED,
    LibraryEstimator,
    as_data,
    import_library,
)
from spanboost.models.widening import ABSENT
from spanboost.rows.block import Block, slice_block
from spanboost.rows.encoder import EncodedBlock
from spanboost.rows.row_sample import RowMemory
from spanboost.rows.user_types import LabelLike, RowLike

NUMBERS = Squared, Absolute, Huber, Quantile, PNorm  # losses of numbers that a fit is useful for
FITS = "current", "next"  # prefixes of their arrays in a file


class Refitted(HullBoost):
    """An estimator of another library that learns a stream: it is fitted again as rows come in.

    The model keeps rows. It fits the estimator to them when it has learned `first` rows, and again
    each time their number has grown by the factor `grow`. A thread of its own fits it. The fit is
    used from a fixed row on, a sixteenth of the rows later: the model waits there if it must. So
    predictions depend on neither the number of threads nor the speed of the machine.

    estimator: an object with fit(X, y) and predict(X), or predict_proba(X) for classes: of
        LightGBM, XGBoost, CatBoost, scikit-learn or your own. "lightgbm", "lightgbm shallow" with
        smaller trees, and "catboost" have settings of their own for each loss (docs/refitted.md).
    memory: number of rows to keep. They are saved with the model.
    grow: factor between the numbers of learned rows at two fits.
    first: number of learned rows at the first fit; before it, the prediction is the mean label.
    keep: "sample" keeps a uniform sample of all rows, "last" the last rows.
    loss, label_range, seed: as for `SpanBoost`.

    >>> import numpy as np
    >>> from spanboost import Refitted
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> model = Refitted(DecisionTreeRegressor(min_samples_leaf=20), first=500)
    >>> predictions = model.learn_many(X, np.sign(X[:, 0] * X[:, 1]))
    >>> model.fits
    [(500, 531), (1000, 1062), (2000, 2125)]
    """

    why_not_covered = "the theorems are about online learners, not about estimators fitted again"

    def __new__(cls, *args: Any, **given: Any) -> Any:
        """Return a model; the parameters of boosters have no meaning here."""
        return object.__new__(cls)

    def __init__(
        self,
        estimator: Any = DEFAULT,
        *,
        memory: int = 100_000,
        grow: float = 2.0,
        first: int = 1000,
        keep: str = "sample",
        loss: Any = "squared",
        label_range: Any = "auto",
        seed: int = 0,
        bits: int | None = None,
    ) -> None:
        known = losses.resolve(loss)
        _check_estimator(estimator, known)
        if predicts_scores(known) and label_range in ("auto", "growing"):
            label_range = (-1, 1)
        learner = BatchLearner(as_data(estimator), first, grow, keep, bits)
        rest = {"loss": loss, "label_range": label_range, "memory": memory, "seed": seed}
        super().__init__(learner, 1, **rest)
        self.core.fitted = RowMemory(int(memory), keep == "last")
        self._fit: Fit | None = None
        self._running: RunningFit | None = None

    def check_fixed(self, use: str) -> NoReturn:
        """Raise a UserError: there are no copies of a learner."""
        raise UserError(
            f"{use} needs boosters, but {self.title} is refitted; train AutoBoost with refit=False "
            "(spanboost train --refit off)"
        )

    def renew(self, **given: Any) -> "Refitted":
        """Return a model with the same parameters that has learned nothing; some can differ."""
        own = {name: getattr(self.learner, name) for name in ("grow", "first", "keep", "bits")}
        shared = {name: getattr(self, name) for name in ("loss", "label_range", "memory", "seed")}
        return Refitted(self.learner.estimator, **own | shared | given)

    @property
    def title(self) -> str:
        """The name of the estimator."""
        estimator = self.learner.estimator
        if isinstance(estimator, str | LibraryEstimator):
            return str(estimator)
        return type(estimator).__name__

    @property
    def fits(self) -> list[tuple[int, int]]:
        """The fits so far: learned rows when each was started, and when it was first used."""
        found, learner = list[tuple[int, int]](), self.learner
        start, end = learner.next_fit(0)
        while end <= self.labels.seen:
            found.append((start, end))
            start, end = learner.next_fit(end)
        return found

    @finishes
    def learn_checked(self, block: CheckedBlock) -> Array:
        """Learn a block that was checked; nothing else may have been learned since."""
        classes, learned = self.core.d, self.labels.seen
        if losses.adds_classes(self.loss):
            self.add_classes(block.labels.shape[1])
        labels = np.array(self.core.sampled_labels(block), np.float64)
        self.core.accept(block.rows)
        self.core.count(block)
        out = self._learn(block.rows, labels, block.weights.astype(np.float64), learned)
        for change in block.changes:
            self.core.change_range(change)
        if self.core.d == 1:
            return out[:, 0]
        known = np.maximum.accumulate(np.maximum(labels + 1, classes))
        return np.where(np.arange(self.core.d) < known, out, ABSENT)

    def _learn(self, rows: EncodedBlock, labels: Array, weights: Array, learned: int) -> Array:
        """Learn rows; return the predictions, each made with the fit that was used at its row."""
        number, out = len(weights), np.empty((len(weights), self.core.d))
        means = self._learn_means(labels, weights)
        before = learned + np.cumsum(weights > 0) - (weights > 0)  # rows learned before each
        kept, first = self._kept, 0
        while first < number:
            start, end = self.learner.next_fit(learned)
            event = start if learned < start else end
            last = int(np.searchsorted(before, event))
            part, block = slice(first, last), slice_block(rows.encoded, first, last)
            out[part] = means[part] if self._fit is None else self._forecasts(block)
            kept.offer(block, labels[part], weights[part], learned)
            learned += int(np.count_nonzero(weights[part]))
            first = last
            if learned == event:
                self._change_fit(start, end, learned)
        return out

    def _change_fit(self, start: int, end: int, learned: int) -> None:
        """Start a fit, or use the one that is running, or both."""
        if learned == end:
            waited = None if self._running is None else self._running.wait()
            self._fit, self._running = waited or self._fit, None
            start, _ = self.learner.next_fit(end)
        if learned == start:
            rows, labels, weights = self._kept.take()
            names = self.encoder.names
            known = {} if names is None or names.bits is not None else dict(names.columns)
            fixed = self.learner.estimator, self.loss_, int(self.seed)
            self._running = RunningFit(FitTask(*fixed, known, rows, labels[:, 0], weights))

    def predict_one(self, x: RowLike) -> float | Array:
        """Return the prediction for one row: a number, or a vector of R^d."""
        rows = self.encoder.single(x)
        if rows is None:
            return Model.predict_one(self, x)
        return single_answer(self.predict_encoded(rows, 0, 1))

    def learn_one(self, x: RowLike, y: LabelLike, weight: float = 1.0) -> float | Array:
        """Learn one row; return the prediction made before the label was seen."""
        return Model.learn_one(self, x, y, weight)

    def predict_encoded(self, rows: EncodedBlock, first: int, last: int) -> Array:
        """Return predictions for the rows first <= t < last of an encoded block."""
        self.core.prepare(rows, 0)
        if self._fit is None:
            out = np.repeat(self.mean_forecast()[None], last - first, axis=0)
        else:
            out = self._forecasts(slice_block(rows.encoded, first, last))
        return out[:, 0] if self.core.d == 1 else out

    def mean_forecast(self) -> Array:
        """Return the mean label [d], or scores of the mean shares of classes."""
        mean: Array = self._means(*self.core.state.bank)[0]
        return mean

    def _forecasts(self, rows: Block) -> Array:
        assert self._fit is not None
        return self._fit.forecasts(rows, self.core.d, has_log_link(self.loss_))

    def _learn_means(self, labels: Array, weights: Array) -> Array:
        """Return the forecasts of the mean label before each row, and add the labels to it."""
        bank = self.core.state.bank
        values = labels
        if isinstance(self.loss_, Softmax):
            values = (labels == np.arange(self.core.d)).astype(np.float64)
        # one after the other, so that blocks of any size give the same bits
        sums = np.cumsum(np.vstack([bank.sums, values * weights[:, None]]), axis=0)
        totals = np.cumsum(np.concatenate([bank.total, weights]))
        bank.sums[:], bank.total[:] = sums[-1], totals[-1]
        return self._means(totals[:-1], sums[:-1])

    def _means(self, total: Array, sums: Array) -> Array:
        """Return the forecasts [rows, d] before the first fit: the mean label or its scores."""
        sums = sums.reshape(-1, self.core.d)
        if isinstance(self.loss_, Softmax):
            return np.log((sums + 0.5) / (total[:, None] + 1))
        if isinstance(self.loss_, Logistic):
            high = (total[:, None] + sums) / 2
            return np.log((high + 0.5) / (total[:, None] - high + 0.5))
        means = sums / np.where(total > 0, total, 1)[:, None]
        return np.where(means > 0, means, 1.0) if has_log_link(self.loss_) else means

    def _rows_kept(self) -> int:
        return 0 if self.core.fitted is None else self.core.fitted.kept

    @property
    def _kept(self) -> RowMemory:
        assert self.core.fitted is not None  # compact models do not learn
        return self.core.fitted

    def details(self) -> dict[str, Any]:
        """Return what `inspect` shows besides parameters, as JSON."""
        return {"fits": [list(one) for one in self.fits], "fitted_rows": self._rows_kept()}

    def own_facts(self) -> dict[str, str]:
        """Return what notebooks and `inspect` show of this kind of model only, as text."""
        return {"fits": f"{len(self.fits)}", "rows kept for fits": f"{self._rows_kept():,}"}

    def _stored_fits(self) -> Iterator[tuple[str, Fit]]:
        """Yield the fits of a file: the one in use, and the next one, as soon as it is finished."""
        running = None if self.core.compact or self._running is None else self._running.wait()
        for name, fit in zip(FITS, (self._fit, running), strict=True):
            if fit is not None:
                yield name, fit

    def header(self) -> dict[str, Any]:
        """Return everything except the arrays, as JSON."""
        own = super().header()  # a ValueError if the estimator is code
        return own | {"fits": {name: fit.header() for name, fit in self._stored_fits()}}

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Yield the arrays of a model that has started, by name."""
        yield from super().tensors()
        for part, fit in self._stored_fits():
            for name, value in fit.tensors():
                yield f"{part}.{name}", value

    @classmethod
    def restore(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Self:
        """Build the model from a header and arrays; a `ModelFileError` if they do not match."""
        given = parameters_from_json(header)
        learner = given["learner"]
        own = {name: getattr(learner, name) for name in ("grow", "first", "keep", "bits")}
        shared = {name: given[name] for name in ("loss", "label_range", "memory", "seed")}
        try:
            model = cls(learner.estimator, **own, **shared)
        except UserError as error:  # the library is not installed
            raise ModelFileError(str(error)) from None
        if losses.adds_classes(model.loss):
            model.add_classes(len(header["labels"]["centre"]))
        model.restore_state(header, tensors)
        return model

    def restore_state(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Set the state to that of a header and arrays; a `ModelFileError` if they do not match."""
        fits = {name: take_kept(tensors, f"{name}.") for name in header["fits"]}
        super().restore_state(header, tensors)
        for name, given in header["fits"].items():
            fit = Fit.restore(given, fits[name])
            if name == "next":
                self._running = RunningFit.finished(fit)
            else:
                self._fit = fit

    def __repr__(self) -> str:
        return f"<Refitted: {self.title}, {len(self.fits)} fits, {describe(self)}>"


def can_refit(loss: Any) -> bool:
    """Return whether estimators can be fitted for a loss."""
    return has_log_link(loss) or isinstance(loss, (*NUMBERS, Logistic, Softmax))


def _check_estimator(estimator: Any, loss: Any) -> None:
    """Raise an error if an estimator cannot be fitted, or not for this loss."""
    scores = isinstance(loss, Logistic | Softmax)
    if not can_refit(loss):
        raise ParameterError("loss", f"must be one that estimators have (got {loss!r})")
    if isinstance(estimator, LibraryEstimator):
        import_library(estimator.library)
    elif isinstance(estimator, str):
        if estimator not in NAMED:
            allowed = "an object, or one of " + ", ".join(map(repr, NAMED))
            raise ParameterError("estimator", f"must be {allowed} (got {estimator!r})")
        import_library(NAMED[estimator])
    elif isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise ParameterError("estimator", f"must be an object with fit (got {estimator!r:.60})")
    elif not hasattr(estimator, "predict_proba" if scores else "predict"):
        needed = "predict_proba, for classes" if scores else "predict"
        raise ParameterError("estimator", f"must have {needed} (got {estimator!r:.60})")
