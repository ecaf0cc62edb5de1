"""The `erase` command: remove rows from the state folder of a service."""

from argparse import Namespace
from collections.abc import Iterator

from spanboost.cli.offline import existing_folder
from spanboost.service.storage.erase import Erasure, erase_rows, plan_erasure
from spanboost.service.storage.folder_check import check_folder
from spanboost.service.storage.folder_lock import lock_folder
from spanboost.service.storage.wording import name_records, number_ranges


def erase(args: Namespace) -> int:
    """Print what erasing rows changes and what remains, and erase them with --yes."""
    folder = existing_folder(args.folder)
    with lock_folder(folder):
        plan = plan_erasure(check_folder(folder), args.ids)
        for line in _describe(plan):
            print(line)
        if not args.yes:
            print("Nothing was changed. To erase the rows, add --yes.")
            return 1
        erase_rows(plan)
    print("Erased. Backups and other copies of the folder still have the rows.")
    return 0


def _describe(plan: Erasure) -> Iterator[str]:
    if plan.records:
        yield f"Journal: rows in {name_records(plan.records)}."
    if plan.pending:
        yield f"Pending rows: rows in {', '.join(path.name for path in plan.pending)}."
    yield "Their ids are forgotten: a row that is sent again is learned again."
    if plan.base is not None:
        numbers = number_ranges(sorted(one.record for one in plan.deleted))
        yield (
            f"Deleted snapshots, because they have learned the rows: {numbers}. The next start "
            f"replays the journal from record {plan.base.record}."
        )
    remains = [*_describe_remains(plan)]
    yield from remains
    if plan.records and not remains:
        yield "The model is then the same as if it had never learned the rows."
    if plan.unsearched:
        names = ", ".join(path.name for path in plan.unsearched)
        yield f"Not searched, so delete them if they contain the rows: {names}."


def _describe_remains(plan: Erasure) -> Iterator[str]:
    """Yield what the model keeps of the rows."""
    if plan.learned:
        yield (
            f"Remains: all snapshots have learned {name_records(plan.learned)}. The sums of the "
            "model contain these rows, and the rows that it keeps may contain them until newer "
            "rows replace them. To remove this as well, train a new model."
        )
    if plan.models:
        yield (
            f"Remains: models in {name_records(plan.models)} of the journal (rollbacks, "
            "challengers) may have learned some of the rows."
        )
