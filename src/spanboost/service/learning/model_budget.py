"""Limits on the growth of the model, checked before a row is written to the journal.

Every row in the journal is learned, now and at every replay. So a row that would need more memory
than the model may take is refused while it can still be refused.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from spanboost.losses import adds_classes
from spanboost.models.memory import (
    CELL_BYTES,
    class_bytes,
    feature_bytes,
    fixed_bytes,
    replay_cells,
    replay_slots,
)
from spanboost.models.model import Model
from spanboost.rows.column_rows import ColumnRows
from spanboost.rows.feature_names import feature_name
from spanboost.rows.key_kinds import is_numeral
from spanboost.service.limits import RequestLimits
from spanboost.service.memory import BASE_BYTES, LEAST_BYTES, MemoryPlan
from spanboost.service.request_rows import Row

CHARACTER_BYTES = 4  # memory for a character of a name, at most

Feature = tuple[str, str]  # a column and a category in it; for dictionaries "" and a name


class Refusal(NamedTuple):
    """Why a row cannot be learned, and the key at fault, if there is one."""

    reason: str
    field: str | None = None


class Growth:
    """What rows add to the model that are accepted and not learned yet."""

    def __init__(self) -> None:
        self.features: set[Feature] = set()
        self.by_column: Counter[str] = Counter()
        self.text_bytes = 0  # of the names
        self.cells = 0  # entries of rows that are kept for replay

    def add(self, features: Iterable[Feature], cells: int) -> None:
        """Add new features, and entries of rows."""
        for feature in features:
            if feature not in self.features:
                self.features.add(feature)
                self.by_column[feature[0]] += 1
                self.text_bytes += CHARACTER_BYTES * len(feature[1])
        self.cells += cells


class FeatureTable:
    """The features of a model, by name or by category."""

    def __init__(self, model: Model) -> None:
        self._names, self._schema = model.encoder.names, model.schema

    def new_features(self, row: Row) -> set[Feature]:
        """Return the features of a row that the model does not know."""
        if self._schema.bits is not None or self._names is None or self._names.bits is not None:
            return set()  # a hashed table does not grow
        if self._schema.columns is None:
            columns = self._names.columns
            names = (feature_name(name, value) for name, value in row.items())
            return {("", name) for name in names if name not in columns}
        return {
            (column.name, value)
            for column in self._schema.categories
            if column.bits is None
            if (value := row.get(column.name)) and value not in column.codes
        }

    def knows(self, rows: ColumnRows) -> bool:
        """Return whether rows in columns have only features that the model knows."""
        texts = {(name, text) for name, values in rows.texts.items() for text in {*values}}
        if self._schema.columns is not None:
            return not any(self.new_features({name: text}) for name, text in texts)
        if self._names is None:
            return True
        names, known = self._names, {*rows.number_names}
        blank = names.blank(known)
        if (names.bits is None and not known <= names.columns.keys()) or blank:
            return False
        return not any(is_numeral(text) or self.new_features({name: text}) for name, text in texts)

    def find_mistake(self, row: Row) -> Refusal | None:
        """Return why a value does not fit the values that its key has had; None if all do."""
        if self._schema.columns is not None or self._names is None:
            return None
        found = self._names.find_mistake(row)
        return None if found is None else Refusal(found[1], found[0])

    def count(self, new: Counter[str]) -> int:
        """Return the number of features that the model needs room for; `new`: by column."""
        if self._schema.columns is None:
            return new[""] + (0 if self._names is None else len(self._names.columns))
        categories = self._schema.categories  # all columns get room for the longest one
        sizes = [
            len(one.codes) + new[one.name] if one.bits is None else 2**one.bits
            for one in categories
        ]
        return 2 * max(len(self._schema.number_names), len(categories) * max(sizes, default=0))

    def known_names(self) -> Iterator[str]:
        """Yield the names and categories that the model holds in memory."""
        if self._names is not None:
            yield from self._names.columns
        for column in self._schema.categories:
            yield from column.codes


class ClassRoom:
    """The memory for classes that models add."""

    def __init__(self, models: Sequence[Model], plan: MemoryPlan) -> None:
        each = list(map(class_bytes, models))
        self._fixed, self._table = sum(one for one, _ in each), sum(one for _, one in each)
        self._start: int = max(model.loss_.d for model in models)
        # memory for classes that were added after the plan was made
        self._grown = max(sum(map(fixed_bytes, models)) + BASE_BYTES - plan.base, 0)
        # with this much more, the service could not start again
        self._spare = plan.total - plan.base - LEAST_BYTES

    def most(self, room: int, features: int) -> int:
        """Return how many classes fit into this memory, beside a number of features."""
        room = min(room, self._spare) - self._grown
        return self._start + max(room, 0) // (self._fixed + features * self._table)

    def extra(self, classes: int) -> tuple[int, int]:
        """Return the bytes of further classes: apart from features, and for each feature."""
        more = max(classes - self._start, 0)
        return self._grown + more * self._fixed, more * self._table


class ModelBudget:
    """Decides which rows the model may learn."""

    def __init__(
        self, model: Model, plan: MemoryPlan, limits: RequestLimits, challenger: Model | None = None
    ) -> None:
        """Create a budget; `challenger`: a model that learns the same rows."""
        self._models = [model] if challenger is None else [model, challenger]
        self._plan, self._limits = plan, limits
        grows = adds_classes(getattr(model, "loss", None))
        self._classes = ClassRoom(self._models, plan) if grows else None
        self._table = FeatureTable(model)
        self._feature_bytes = sum(map(feature_bytes, self._models))
        self._text_bytes = CHARACTER_BYTES * sum(map(len, self._table.known_names()))
        slots = sum(map(replay_slots, self._models))
        self._max_cells = plan.replay_bytes // CELL_BYTES
        # rows of this width can always be kept: all of them together take half of the space
        self._fair_cells = self._max_cells // (2 * slots) if slots else None
        self._cells = sum(map(replay_cells, self._models))  # an upper bound

    def most_classes(self) -> tuple[int, str]:
        """Return how many classes the model may have, and what sets this limit."""
        most = self._limits.classes
        if self._classes is not None:
            features = self._table.count(Counter())
            taken = self._text_bytes + features * self._feature_bytes
            room = self._classes.most(self._plan.model_bytes - taken, features)
            if room < most:
                return room, (
                    f"the model may take at most {self._plan.model_bytes:,} bytes for its features "
                    "and classes (a share of --max-memory)"
                )
        return most, f"the model may have at most {most:,} classes (--max-classes)"

    def check(
        self, rows: Mapping[int, Row], before: Growth, classes: int = 0
    ) -> tuple[dict[int, Refusal], Growth]:
        """Return why some of the rows, given by number, cannot be learned; and the others' growth.

        before: the growth by earlier rows that are accepted and not learned yet.
        classes: number of classes after the rows.
        """
        extra = (0, 0) if self._classes is None else self._classes.extra(classes)
        refusals, own = dict[int, Refusal](), Growth()
        for number, row in rows.items():
            new = self._table.new_features(row) - before.features - own.features
            reason = self._refuse_features(new, before, own, extra) if new else None
            reason = reason or self._refuse_cells(before.cells + own.cells, len(row))
            refusal = self._table.find_mistake(row) if reason is None else Refusal(reason)
            if refusal is None:
                own.add(new, len(row))
            else:
                refusals[number] = refusal
        return refusals, own

    def known_growth(self, rows: ColumnRows) -> Growth | None:
        """Return the growth by rows in columns that have no new features.

        Return None if `check` must look at single rows.
        """
        wide = self._fair_cells is not None and len(rows.names) > self._fair_cells
        if wide or not self._table.knows(rows):
            return None
        growth = Growth()
        growth.add((), len(rows) * len(rows.names))
        return growth

    def accept(self, growth: Growth) -> None:
        """Count rows that were written to the journal."""
        self._text_bytes += growth.text_bytes
        self._cells += growth.cells * len(self._models)

    def _refuse_features(
        self, new: set[Feature], before: Growth, own: Growth, extra: tuple[int, int]
    ) -> str | None:
        """Return why the model cannot have new features besides those that it has and will have."""
        by_column = before.by_column + own.by_column + Counter(column for column, _ in new)
        count = self._table.count(by_column)
        what = f"the row has {len(new):,} new feature names or categories"
        if count > self._limits.features:
            return (
                f"{what}, and the model may have at most {self._limits.features:,} features "
                "(--max-features)"
            )
        text = CHARACTER_BYTES * sum(len(name) for _, name in new)
        size = self._text_bytes + before.text_bytes + own.text_bytes + text
        fixed, table = extra
        if size + fixed + count * (self._feature_bytes + table) > self._plan.model_bytes:
            return (
                f"{what}, and the model may take at most {self._plan.model_bytes:,} bytes for its "
                "features (a share of --max-memory)"
            )
        return None

    def _refuse_cells(self, before: int, width: int) -> str | None:
        """Return why a row cannot be kept for replay after others."""
        if self._fair_cells is None or width <= self._fair_cells:
            return None
        if self._cells + before + width > self._max_cells:
            self._cells = sum(map(replay_cells, self._models))
        if self._cells + before + width <= self._max_cells:
            return None
        return (
            f"the row has {width:,} keys, and the rows that the model keeps for replay take all of "
            f"their memory (a share of --max-memory); rows with up to {self._fair_cells:,} keys "
            "can be learned"
        )
