"""Which labelled rows of a request can be learned: their rows, ids, labels and sizes."""

from collections.abc import Container, Mapping, Sequence
from copy import deepcopy
from typing import Any

from spanboost.data.target import Target
from spanboost.rows.column_rows import ColumnRows, take_rows
from spanboost.service.learning.jobs import LearnJob, Outcome
from spanboost.service.learning.model_budget import Growth, ModelBudget, Refusal
from spanboost.service.limits import describe_duration
from spanboost.service.request_rows import (
    CONFLICT,
    GONE,
    Examples,
    RejectedRow,
    Row,
    collect_examples,
    find_invalid_labels,
)
from spanboost.service.storage.learned_ids import label_mark
from spanboost.service.storage.state import State


def validate_job(
    state: State,
    budget: ModelBudget,
    job: LearnJob,
    taken_ids: Mapping[str, int],
    target: Target,
    growth: Growth,
) -> tuple[Examples, Outcome, Target]:
    """Return the rows of a request to learn, its outcome, and the target after these rows.

    taken_ids: ids of rows accepted from earlier requests of the same group, with label marks.
    growth: of the model by the same rows; the rows of this request are added if it succeeds.
    """
    field = state.model.schema.label or "label"
    rejected, examples = list[RejectedRow](), job.examples
    while True:
        good, duplicates, refused = _find_rows(state, examples, taken_ids, field)
        after = deepcopy(target) if target.as_text else target
        wrong = find_invalid_labels(after, good.labels)
        excess, own = _check_growth(budget, good.rows, wrong, growth, len(after.values))
        numbers = good.numbers
        rejected += [RejectedRow(numbers[t], field, what) for t, what in wrong.items()]
        rejected += [RejectedRow(numbers[t], one.field, one.reason) for t, one in excess.items()]
        if (rejected or refused) and not job.skip:
            return collect_examples({}), Outcome(0, 0, rejected + refused), target
        if not wrong and not excess:
            growth.add(own.features, own.cells)
            return good, Outcome(len(good.numbers), duplicates, rejected + refused), after
        # repeat without them: a later row with the id of a bad one is not a duplicate
        examples = examples.without({numbers[t] for t in [*wrong, *excess]})


def _check_growth(
    budget: ModelBudget,
    rows: Sequence[Row | None],
    left_out: Container[int],
    before: Growth,
    classes: int,
) -> tuple[dict[int, Refusal], Growth]:
    """Return why some rows, by position, cannot be learned; and the growth by the others.

    left_out: positions of rows that are not learned for another reason.
    """
    known = budget.known_growth(rows) if isinstance(rows, ColumnRows) else None
    if known is not None:
        return {}, known
    chosen = {t: row or {} for t, row in enumerate(rows) if t not in left_out}
    return budget.check(chosen, before, classes)


def label_marks(examples: Examples) -> dict[str, int]:
    """Return the marks of the labels of rows that have an id."""
    marked = zip(examples.ids, examples.labels, strict=True)
    return {id: label_mark(label) for id, label in marked if id is not None}


def _find_rows(
    state: State, examples: Examples, taken_ids: Mapping[str, int], field: str
) -> tuple[Examples, int, list[RejectedRow]]:
    """Return the examples with their rows, the number of duplicates, and the refused rows.

    taken_ids: ids of rows that are accepted and not in the journal yet, with label marks.
    field: the key of labels.
    """
    duplicates, refused, own = set[int](), list[RejectedRow](), dict[str, int]()
    pending = dict.fromkeys(examples.pending_ids())
    places, waiting = state.pending.get_rows(pending) if pending else ({}, [])
    for t, id in enumerate(examples.ids):
        if id is None:
            continue
        number, mark = examples.numbers[t], label_mark(examples.labels[t])
        learned = own.get(id, taken_ids.get(id, state.ids.mark(id)))
        if learned is not None and learned == mark:
            duplicates.add(number)
            continue
        if learned is not None:
            why = f"the label differs from the one that was learned for the id {id!r}"
            refused.append(RejectedRow(number, field, why, CONFLICT))
            continue
        if id in pending and id not in places and examples.rows[t] is None:
            refused.append(RejectedRow(number, None, describe_missing(state, id), GONE))
            continue
        own[id] = mark
    without = duplicates | {one.row for one in refused}
    good = examples.without(without) if without else examples
    if pending:
        good = good._replace(rows=_fill_rows(good, places, waiting))
    return good, len(duplicates), refused


def _fill_rows(examples: Examples, places: dict[str, int], waiting: Sequence[Row]) -> Any:
    """Return the rows of examples, with those that waited; `places`: of ids among these."""
    if all(row is None for row in examples.rows):
        return take_rows(waiting, [places[id or ""] for id in examples.ids])
    named = zip(examples.ids, examples.rows, strict=True)
    return [waiting[places[id or ""]] if row is None else row for id, row in named]


def describe_missing(state: State, id: str) -> str:
    """Return why there is no pending row with an id."""
    return (
        f"no pending row with the id {id!r}: it is unknown or has expired (rows wait for at most "
        f"{describe_duration(state.limits.pending_seconds)})"
    )
