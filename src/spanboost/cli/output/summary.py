"""The result of a pass: as numbers for --json, and as lines of text."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spanboost.analysis.label_sums import LabelSums
from spanboost.analysis.metrics.tape import window_ends
from spanboost.analysis.progressive import LossTape
from spanboost.checks import finite_or_none
from spanboost.cli.output.comparisons import describe
from spanboost.cli.output.interval_results import compared_rows, interval_rows, window_lines
from spanboost.cli.output.metrics_table import align, confusion_rows, model_rows, part_rows

BASELINE = " alone"
MOST = 0.9  # share of the total loss from which on a row is named
ROWS = 20  # at the start that are never named: a model that has learned little predicts them
LONG = 0.5  # seconds of compiling that are worth a remark


class Speed(NamedTuple):
    """How long a process took."""

    rows: int  # learned by this process
    seconds: float
    compiling: float  # seconds of these that were spent compiling

    @property
    def rows_per_second(self) -> float:
        """The number of rows in a second without compiling, which happens once."""
        return self.rows / max(self.seconds - self.compiling, 1e-6)


def result_of(
    names: Sequence[str], tape: LossTape, labels: LabelSums, speed: Speed, skipped: int
) -> dict[str, Any]:
    """Return the losses of the whole stream and of its halves, the first with floor(n / 2) rows.

    skipped: the number of rows left out. The result is that of the first model.
    """
    constant, constant_loss = labels.best_constant()
    common = {
        "examples": tape.rows,
        "weight": tape.last[0],
        "seconds": round(speed.seconds, 6),
        "compile_seconds": round(speed.compiling, 6),
        "examples_per_second": round(speed.rows_per_second, 3),
        "best_constant": finite_or_none(constant),
        "best_constant_loss": finite_or_none(constant_loss),
        "skipped": skipped,
    }
    each = losses_of_each(names, tape)
    result = {"model": names[0], **common, **each[names[0]]}
    baseline = baseline_of(names[0])
    if baseline in each:
        result["baseline"] = {**common, **each[baseline]}
        result["relative_improvement"] = improvement(each[names[0]], each[baseline])
    result["windows"] = windows_of(names, tape)
    if (dominant := _dominant_row(tape)) is not None:
        result["dominant_row"] = dominant
    if len(names) > (2 if baseline in each else 1):
        result["compared"] = each
    return result


def losses_of_each(names: Sequence[str], tape: LossTape) -> dict[str, dict[str, Any]]:
    """Return the average loss of each model over the stream and its halves; None over no rows."""
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


def _dominant_row(tape: LossTape) -> dict[str, Any] | None:
    """Return the row that has most of the first model's loss, and the loss of the others, or None.

    The row is counted from 1.
    """
    row = tape.largest()
    if row < ROWS:
        return None
    before, own, after = tape.sums([0, row, row + 1, tape.rows])
    others = before + after
    if not (own[1] > 0 and own[1] >= MOST * tape.last[1] and others[0] > 0):
        return None
    return {"row": row + 1, "loss_of_others": finite_or_none(others[1] / others[0])}


def windows_of(names: Sequence[str], tape: LossTape) -> dict[str, Any]:
    """Return the average loss of each model over windows of equal length; the last may be longer.

    `rows` in the result holds the last row of each window.
    """
    ends = window_ends(tape.rows)
    averages = [tape.average(first, last) for first, last in itertools.pairwise(ends)]
    losses = {name: [finite_or_none(a[k]) for a in averages] for k, name in enumerate(names)}
    return {"rows": ends[1:], "loss": losses}


def add_results(result: dict[str, Any], key: str, each: Mapping[str, dict[str, Any]]) -> None:
    """Add further results, which `each` has by the model's name."""
    result[key] = each[result["model"]]
    if "baseline" in result:
        result["baseline"][key] = each[baseline_of(result["model"])]
    for name, one in result.get("compared", {}).items():
        one[key] = each[name]


def baseline_of(name: str) -> str:
    """Return the name of the unboosted learner of a model; for auto, that of the linear learner."""
    learner = name.partition(":")[0]
    return f"{'linear' if learner == 'auto' else learner}{BASELINE}"


def improvement(one: dict[str, Any], baseline: dict[str, Any]) -> float | None:
    """Return the share of the baseline's loss on the second half that a model saves."""
    ours, theirs = one["loss_second_half"], baseline["loss_second_half"]
    return None if ours is None or not theirs else 1 - ours / theirs


def format_summary(result: dict[str, Any], label_sum: float | None) -> str:
    """Return the closing lines of a pass."""
    lines = [
        "finished run",
        f"number of examples = {result['examples']:,}",
        f"weighted example sum = {result['weight']:g}",
    ]
    for what, value in (
        ("weighted label sum", label_sum),
        ("average loss", result["loss"]),
        ("best constant", result["best_constant"]),
        ("best constant's loss", result["best_constant_loss"]),
    ):
        if value is not None:
            lines.append(f"{what} = {value:z.6g}")
    lines += ["", *align(part_rows(result)), ""]
    if "dominant_row" in result:
        lines += [_describe_dominant(result["dominant_row"]), ""]
    confusion = confusion_rows(result.get("metrics", {}).get("whole", {}))
    if confusion:
        lines += [*align(confusion), ""]
    if "compared" in result:
        lines += [*align(model_rows(result)), ""]
    if "intervals" in result:
        lines += [*_intervals(result), ""]
    if "comparisons" in result:
        lines += describe(result["comparisons"])
    if result.get("relative_improvement") is not None:
        lines.append(
            f"improvement over {baseline_of(result['model'])}, second half = "
            f"{result['relative_improvement']:+.2%}"
        )
    if "drift" in result:
        moments = ", ".join(f"{row:,}" for row in result["drift"]["rows"])
        lines.append(
            f"drift ({result['drift']['detector']}), after rows: {moments or 'none found'}"
        )
    if result["skipped"]:
        lines.append(f"bad rows left out = {result['skipped']:,}")
    lines.append(describe_speed(result))
    return "\n".join(lines)


def _describe_dominant(found: Mapping[str, Any]) -> str:
    text = f"row {found['row']:,} has at least {MOST:.0%} of the total loss: check its label"
    if found["loss_of_others"] is None:
        return text
    return f"{text}; average loss of the other rows = {found['loss_of_others']:z.6g}"


def describe_speed(result: Mapping[str, Any]) -> str:
    """Return the time that a pass took, and its speed without compiling."""
    seconds, compiling = result["seconds"], result["compile_seconds"]
    long = f"including {compiling:.2f} for compiling; without these, " if compiling >= LONG else ""
    speed = f"{result['examples_per_second']:,.0f}"
    unit = "example" if speed == "1" else "examples"
    return f"{seconds:.2f} seconds, {long}{speed} {unit} a second"


def _intervals(result: dict[str, Any]) -> list[str]:
    lines = [*align(interval_rows(result)), *window_lines(result)]
    return [*lines, "", *align(compared_rows(result))] if "compared" in result else lines
