"""Which labelled rows of a request can be learned: their rows, ids, labels and sizes."""

from collections.abc import Mapping, Sequence
from copy import deepcopy

from spanboost.data.target import Target
from spanboost.service.learning.jobs import LearnJob, Outcome
from spanboost.service.learning.model_budget import Growth, ModelBudget
from spanboost.service.limits import describe_duration
from spanboost.service.request_rows import (
    CONFLICT,
    GONE,
    Example,
    RejectedRow,
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
) -> tuple[list[Example], Outcome, Target]:
    """Return the rows of a request to learn, its outcome, and the target after these rows.

    taken_ids: ids of rows accepted from earlier requests of the same group, with label marks.
    growth: of the model by the same rows; the rows of this request are added if it succeeds.
    """
    field = state.model.schema.label or "label"
    rejected, examples = list[RejectedRow](), job.examples
    while True:
        good, duplicates, refused = _find_rows(state, examples, taken_ids, field)
        after = deepcopy(target) if target.as_text else target
        numbers, labels = list(good), [example.label for example in good.values()]
        wrong = {numbers[t]: what for t, what in find_invalid_labels(after, labels).items()}
        rejected += [RejectedRow(number, field, what) for number, what in wrong.items()]
        rows = {number: one.row or {} for number, one in good.items() if number not in wrong}
        excess, own = budget.check(rows, growth, len(after.values))
        rejected += [RejectedRow(number, None, what) for number, what in excess.items()]
        wrong |= excess
        if (rejected or refused) and not job.skip:
            return [], Outcome(0, 0, rejected + refused), target
        if not wrong:
            growth.add(own.features, own.cells)
            return list(good.values()), Outcome(len(good), duplicates, rejected + refused), after
        # repeat without them: a later row with the id of a bad one is not a duplicate
        examples = {number: one for number, one in examples.items() if number not in wrong}


def label_marks(examples: Sequence[Example]) -> dict[str, int]:
    """Return the marks of the labels of rows that have an id."""
    return {one.id: label_mark(one.label) for one in examples if one.id is not None}


def _find_rows(
    state: State, examples: dict[int, Example], taken_ids: Mapping[str, int], field: str
) -> tuple[dict[int, Example], int, list[RejectedRow]]:
    """Return the examples with their rows, the number of duplicates, and the refused rows.

    taken_ids: ids of rows that are accepted and not in the journal yet, with label marks.
    field: the key of labels.
    """
    good, duplicates, refused, own = dict[int, Example](), 0, list[RejectedRow](), dict[str, int]()
    for number, example in examples.items():
        id = example.id
        learned = None if id is None else own.get(id, taken_ids.get(id, state.ids.mark(id)))
        if learned is not None and learned == label_mark(example.label):
            duplicates += 1
            continue
        if learned is not None:
            why = f"the label differs from the one that was learned for the id {id!r}"
            refused.append(RejectedRow(number, field, why, CONFLICT))
            continue
        complete = _add_row(state, example)
        if complete is None:
            refused.append(RejectedRow(number, None, describe_missing(state, id or ""), GONE))
            continue
        if id is not None:
            own[id] = label_mark(example.label)
        good[number] = complete
    return good, duplicates, refused


def _add_row(state: State, example: Example) -> Example | None:
    """Return the example with its row; None if the row is not pending."""
    if example.row is not None:
        return example
    row = state.pending.get(example.id or "")
    return None if row is None else example._replace(row=row)


def describe_missing(state: State, id: str) -> str:
    """Return why there is no pending row with an id."""
    return (
        f"no pending row with the id {id!r}: it is unknown or has expired (rows wait for at most "
        f"{describe_duration(state.limits.pending_seconds)})"
    )
