"""What a pass came to: as numbers for --json, as lines for people."""

import itertools
from collections.abc import Sequence
from typing import Any

from spanboost.analysis.label_sums import LabelSums
from spanboost.analysis.progressive import LossTape
from spanboost.checks import finite_or_none

BASELINE = " alone"
WINDOWS = 20


def result_of(
    names: Sequence[str], tape: LossTape, labels: LabelSums, rows: int, seconds: float, skipped: int
) -> dict[str, Any]:
    """Losses of the whole stream and of its halves: the first floor(n / 2) rows, and the rest.

    `rows` of them were learned in these seconds. The first model is the one in question.
    """
    constant, constant_loss = labels.best_constant()
    common = {
        "examples": tape.rows,
        "weight": tape.last[0],
        "seconds": round(seconds, 6),
        "examples_per_second": round(rows / seconds, 3),
        "best_constant": finite_or_none(constant),
        "best_constant_loss": finite_or_none(constant_loss),
        "skipped": skipped,
    }
    each = losses_of_each(names, tape)
    result = {"model": names[0], **common, **each[names[0]]}
    baseline = alone(names[0])
    if baseline in each:
        result["baseline"] = {**common, **each[baseline]}
        result["relative_improvement"] = improvement(each[names[0]], each[baseline])
    result["windows"] = windows_of(names, tape)
    if len(names) > (2 if baseline in each else 1):
        result["compared"] = each
    return result


def losses_of_each(names: Sequence[str], tape: LossTape) -> dict[str, dict[str, Any]]:
    """Each model's average loss over the stream and its halves; None over no rows."""
    half = tape.rows // 2
    averages = {
        "loss": tape.average(0, tape.rows),
        "loss_first_half": tape.average(0, half),
        "loss_second_half": tape.average(half, tape.rows),
    }
    return {
        name: {
            "examples": tape.rows,
            **{key: finite_or_none(value[k]) for key, value in averages.items()},
        }
        for k, name in enumerate(names)
    }


def windows_of(names: Sequence[str], tape: LossTape) -> dict[str, Any]:
    """Each model's average loss over windows of one length, the last of them with what is left.

    `rows` are the rows at their ends.
    """
    length = max(1, tape.rows // WINDOWS)
    ends = [*range(length, tape.rows - length + 1, length), tape.rows]
    averages = [tape.average(first, last) for first, last in itertools.pairwise([0, *ends])]
    losses = {name: [finite_or_none(a[k]) for a in averages] for k, name in enumerate(names)}
    return {"rows": ends, "loss": losses}


def alone(name: str) -> str:
    """The name of a model's learner without boosting; of auto, which has many, the linear one."""
    learner = name.partition(":")[0]
    return f"{'linear' if learner == 'auto' else learner}{BASELINE}"


def improvement(one: dict[str, Any], baseline: dict[str, Any]) -> float | None:
    """How much less the one loses than the other, as a share, over the second half."""
    ours, theirs = one["loss_second_half"], baseline["loss_second_half"]
    return None if ours is None or not theirs else 1 - ours / theirs


def summary(result: dict[str, Any], label_sum: float | None) -> str:
    """The closing lines."""
    lines = [
        "",
        "finished run",
        f"number of examples = {result['examples']:,}",
        f"weighted example sum = {result['weight']:g}",
    ]
    if label_sum is not None:
        lines.append(f"weighted label sum = {label_sum:.10g}")
    lines.append(f"average loss = {_shown(result['loss'])}")
    lines.append(
        f"  first half {_shown(result['loss_first_half'])}, "
        f"second half {_shown(result['loss_second_half'])}"
    )
    if result["best_constant"] is not None:
        lines.append(f"best constant = {result['best_constant']:.10g}")
    if result["best_constant_loss"] is not None:
        lines.append(f"best constant's loss = {result['best_constant_loss']:.10g}")
    for name, one in result.get("compared", {}).items():
        lines.append(
            f"{name}: average loss {_shown(one['loss'])}, "
            f"second half {_shown(one['loss_second_half'])}"
        )
    if result.get("relative_improvement") is not None:
        lines.append(
            f"improvement over {alone(result['model'])}, second half = "
            f"{result['relative_improvement']:+.2%}"
        )
    if "drift" in result:
        moments = ", ".join(f"{row:,}" for row in result["drift"]["rows"])
        lines.append(
            f"drift ({result['drift']['detector']}), after rows: {moments or 'none found'}"
        )
    if result["skipped"]:
        lines.append(f"bad rows left out = {result['skipped']:,}")
    lines.append(
        f"{result['seconds']:.2f} seconds, {result['examples_per_second']:,.0f} examples a second"
    )
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.10g}"
