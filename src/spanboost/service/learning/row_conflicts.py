"""Predictions under ids that already wait for the labels of other rows."""

from collections.abc import Sequence

from spanboost.service.learning.jobs import PredictJob, RowConflictError
from spanboost.service.request_rows import Row
from spanboost.service.storage.pending_rows import PendingRows


def refuse_conflicts(jobs: Sequence[PredictJob], pending: PendingRows) -> list[PredictJob]:
    """Refuse jobs with ids under which other rows wait; return the other jobs.

    The label that arrives for an id must train the row that was predicted first. The same row may
    be predicted again: clients repeat requests whose response was lost.
    """
    good, waiting = list[PredictJob](), dict[str, Row]()
    for job in jobs:
        reasons, own = dict[int, str](), dict[str, Row]()
        for t, id in enumerate(job.ids if job.keep else ()):
            if id is None:
                continue
            row = job.features[t]
            other = own.get(id, waiting.get(id))
            if other is None:
                other = pending.get(id)
            if other is not None and other != row:
                reasons[t] = f"another row waits for its label under the id {id!r}"
            own.setdefault(id, row)
        if reasons:
            job.set_exception(RowConflictError(reasons))
        else:
            good.append(job)
            waiting |= own
    return good
