"""The metrics of the service, for Prometheus and for the dashboard."""

import math
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from spanboost import __version__
from spanboost.checks import finite_or_none
from spanboost.losses import Softmax, predicts_scores
from spanboost.models.predictions import class_names
from spanboost.rows.labels import LabelHealth
from spanboost.service.histogram import Histogram, format_histograms
from spanboost.service.http.model_metrics import (
    HELP,
    collect_model_metrics,
    confusion_series,
)
from spanboost.service.http.startup import StartProgress
from spanboost.service.http.worker_pool import WorkerPool, describe_workers
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.follower import Follower
from spanboost.service.memory import resident_memory
from spanboost.service.storage.record_files import SYNC_SECONDS
from spanboost.service.storage.running_intervals import COVERAGE, RunningIntervals
from spanboost.service.storage.state import State


class RequestCounters:
    """Counts requests by path and status, and their durations by path."""

    def __init__(self) -> None:
        self.responses: Counter[tuple[str, int]] = Counter()
        self.durations: dict[str, Histogram] = {}
        self.refused_rows = 0
        self.unknown_texts = 0
        self.open_body_bytes = 0  # size of the bodies of all open requests

    def record(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.responses[path, status] += 1
        self.durations.setdefault(path, Histogram()).add(seconds)


def collect_metrics(engine: Engine, counters: RequestCounters) -> dict[str, Any]:
    """Return the current values of all metrics of the dashboard, as JSON values."""
    state = engine.state
    progress, model, challenger = state.progress, state.model, state.challenger
    labels = model.label_health
    classes = class_names(model) if predicts_scores(model.loss_) else []
    return {
        "time": time.time(),
        "learned": progress.rows,
        "predicted": engine.predicted,
        "duplicates": engine.duplicates,
        "refused": counters.refused_rows,
        "unknown_texts": counters.unknown_texts,
        "loss": finite_or_none(progress.loss),
        "recent_loss": finite_or_none(progress.recent),
        "waiting": engine.writer.waiting,
        "pending": len(state.pending),
        "pending_oldest": state.pending.oldest_seconds,
        "pending_dropped": state.pending.dropped,
        "left_out": state.left_out,
        "record": state.learned_record,
        "snapshot": state.snapshot_record,
        "journal_bytes": state.journal.size,
        "snapshot_age": _snapshot_age(state),
        "disk_problems": engine.failed_writes,
        "drifts": list(progress.drifts),
        "drifted": progress.drifted,
        "weights": model.weights_,
        "clipped": labels.clipped,
        "range_changes": _range_changes(labels),
        "nans": state.nans,
        "trouble": engine.failure,
        "curve": [list(map(finite_or_none, point)) for point in list(progress.curve)],
        "classes": classes,
        "metrics": collect_model_metrics(state.metrics, classes),
        "pairs": _pairs(state),
        "intervals": _intervals(state.intervals),
        "interval_coverage": _coverage(state.intervals),
        "challenger": challenger and challenger.describe(),
    }


def describe_follower(follower: Follower | None) -> dict[str, Any] | None:
    """Return how far a follower is behind its leader, as JSON values; None without a leader."""
    if follower is None:
        return None
    return {
        "leader": follower.address,
        "records": follower.lag_records,
        "seconds": follower.lag_seconds,
        "responds": follower.problem is None,
    }


def _range_changes(labels: LabelHealth) -> dict[str, int]:
    """Return the row of the last change of each kind; a kind that never happened is left out."""
    rows = {"widened": labels.widened, "shrunk": labels.shrunk, "new_units": labels.new_units}
    return {kind: row for kind, row in rows.items() if row is not None}


def _pairs(state: State) -> list[list[float | None]]:
    """Return the last predictions with their labels; class numbers for classes."""
    pairs, loss = list(state.progress.pairs), state.model.loss_
    if predicts_scores(loss) and not isinstance(loss, Softmax):
        pairs = [(float(score > 0), float(label > 0)) for score, label in pairs]
    return [list(map(finite_or_none, pair)) for pair in pairs]


def _intervals(found: RunningIntervals) -> dict[str, Any] | None:
    """Return the coverage of the intervals over time, and the last ones; None without intervals."""
    if not found.rows:
        return None
    last = [list(map(finite_or_none, one)) for one in list(found.last)]
    return {"target": COVERAGE, "rows": found.rows, "curve": found.curve, "last": last}


def _coverage(found: RunningIntervals) -> float | None:
    return found.inside / found.rows if found.rows else None


_METRICS = {
    "learned": ("learned_rows_total", "counter", "Rows learned since the folder was created."),
    "predicted": ("predicted_rows_total", "counter", "Rows predicted since the start."),
    "duplicates": ("duplicate_rows_total", "counter", "Duplicate rows since the start."),
    "refused": ("refused_rows_total", "counter", "Bad rows refused since the start."),
    "unknown_texts": ("unknown_texts_total", "counter", "Unknown texts under keys of numbers."),
    "left_out": ("left_out_rows_total", "counter", "Rows in the journal that the model rejected."),
    "loss": ("loss", "gauge", "Average loss of all rows, each predicted before it was learned."),
    "recent_loss": ("recent_loss", "gauge", "Average loss of the last 1,000 rows, approximately."),
    "interval_coverage": ("interval_coverage", "gauge", "Share of labels in 90 % intervals."),
    "clipped": ("labels_clipped_total", "counter", "Labels learned as if closer to the others."),
    "nans": ("state_nans", "gauge", "NaN in the state of the model, counted at snapshots."),
    "drifted": ("drifts_total", "counter", "Drifts detected since the folder was created."),
    "waiting": ("waiting_rows", "gauge", "Rows in the queue for the journal and the model."),
    "pending": ("pending_rows", "gauge", "Predicted rows that wait for their labels."),
    "pending_oldest": ("pending_oldest_seconds", "gauge", "Age of the oldest pending row."),
    "pending_dropped": ("pending_dropped_total", "counter", "Pending rows dropped without label."),
    "record": ("journal_record", "gauge", "Number of the last journal record that was learned."),
    "snapshot": ("snapshot_record", "gauge", "Number of the last journal record in a snapshot."),
    "snapshot_age": ("snapshot_age_seconds", "gauge", "Age of the last snapshot."),
    "journal_bytes": ("journal_bytes", "gauge", "Size of the journal on disk."),
    "disk_problems": ("disk_problems_total", "counter", "Failed writes since the start."),
}


def prometheus_text(
    engine: Engine | None,
    counters: RequestCounters,
    progress: StartProgress,
    ready: bool,
    follower: Follower | None = None,
) -> str:
    """Return the metrics in the text format of Prometheus (0.0.4).

    Without an engine, the service is starting, and there are only the metrics of the process.
    """
    lines = format_metric("info", "gauge", "Version.", {f'version="{__version__}"': 1})
    help = "Whether the service can predict and learn (1) or not (0)."
    lines += format_metric("ready", "gauge", help, {"": int(ready)})
    for name, size, which in (
        ("replay_done_bytes", progress.done, "replayed since the start"),
        ("replay_bytes", progress.size, "to replay at the start"),
    ):
        lines += format_metric(name, "gauge", f"Bytes of the journal {which}.", {"": size})
    if engine is not None:
        lines += _format_engine(engine, counters)
    if follower is not None:
        lines += _format_follower(follower)
    lines += format_metric("memory_bytes", "gauge", "Resident memory.", {"": resident_memory()})
    responses = {
        f'path="{path}",status="{code}"': n for (path, code), n in list(counters.responses.items())
    }
    lines += format_metric("requests_total", "counter", "Requests since the start.", responses)
    by_path = {f'path="{path}"': one for path, one in list(counters.durations.items())}
    for name, help, histograms in (
        ("request", "Time from the first byte of a request to the end of its response.", by_path),
        ("journal_sync", "Time to sync a write to the disk.", {"": SYNC_SECONDS}),
        ("replay", "Time to replay the journal at the start.", {"": progress.replay_seconds}),
    ):
        lines += format_histograms(f"spanboost_{name}_seconds", help, histograms)
    return "\n".join(lines) + "\n"


def format_workers(pool: WorkerPool, last_record: int) -> str:
    """Return the metrics of worker processes; `last_record`: of the leader's journal."""
    state, reports = describe_workers(pool, last_record), pool.reports()
    lines = list[str]()
    for name, type, help, value in (
        ("workers", "gauge", "Worker processes besides the leader.", state["workers"]),
        ("workers_ready", "gauge", "Worker processes that answer predictions.", state["ready"]),
        ("worker_restarts_total", "counter", "Worker processes started again.", pool.restarts),
    ):
        lines += format_metric(name, type, help, {"": value})
    for name, type, help, values in (
        ("lag_records", "gauge", "Records that a worker has not learned.", state["lag_records"]),
        ("lag_seconds", "gauge", "Time since it had all records.", state["lag_seconds"]),
        (
            *("predicted_rows_total", "counter", "Rows predicted since the worker was started."),
            [one.predicted for one in reports],
        ),
    ):
        named = {
            f'worker="{number}"': math.nan if value is None else value
            for number, value in enumerate(values, 1)
        }
        lines += format_metric(f"worker_{name}", type, help, named)
    return "\n".join(lines) + "\n"


_OF_PROCESS = ("spanboost_info", "spanboost_memory_bytes", "spanboost_journal_sync_seconds")


def merge_metrics(texts: Mapping[str, str]) -> str:
    """Return the metrics of several models as one text, with the label `model`.

    Metrics of the whole process, which are the same for every model, occur once.
    """
    metrics = dict[str, list[str]]()  # lines by name of the metric, which must be together
    for model, text in texts.items():
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name = line.split()[2]
                known = name in metrics
                lines = metrics.setdefault(name, [])
            of_process = name in _OF_PROCESS
            if line.startswith("#") or of_process:
                lines += [] if known else [line]
            else:
                lines.append(_add_label(line, f'model="{model}"'))
    return "\n".join(line for lines in metrics.values() for line in lines) + "\n"


def _add_label(line: str, label: str) -> str:
    """Return a line of a metric with one more label."""
    name, _, rest = line.partition(" ")
    if "{" in name:
        return line.replace("{", f"{{{label},", 1)
    return f"{name}{{{label}}} {rest}"


def _format_engine(engine: Engine, counters: RequestCounters) -> list[str]:
    """Return the lines of the metrics of the model, the folder and the queues."""
    current, lines = collect_metrics(engine, counters), list[str]()
    for key, (name, type, help) in _METRICS.items():
        value = current[key]
        lines += format_metric(name, type, help, {"": float("nan") if value is None else value})
    weights = {f'expert="{name}"': value for name, value in current["weights"].items()}
    lines += format_metric("expert_weight", "gauge", "Weights of AutoBoost's experts.", weights)
    changes = {f'kind="{kind}"': row for kind, row in current["range_changes"].items()}
    help = "Rows learned up to the last change of the label range."
    lines += format_metric("label_range_changed_row", "gauge", help, changes)
    lines += _format_model(current["metrics"], current["classes"])
    lines += _format_challenger(current["challenger"])
    queues = {'queue="learn"': engine.writer, 'queue="predict"': engine.predictor}
    for name, what, attribute in (
        ("rows", "Rows", "waiting"),
        ("requests", "Requests", "jobs"),
        ("oldest_seconds", "Age of the oldest request", "oldest_seconds"),
    ):
        values = {key: getattr(worker, attribute) for key, worker in queues.items()}
        help = f"{what} in the queue or in work."
        lines += format_metric(f"queue_{name}", "gauge", help, values)
    name, help = "spanboost_snapshot_seconds", "Time to write a snapshot."
    return lines + format_histograms(name, help, {"": engine.snapshot_seconds})


def _format_model(metrics: dict[str, Any], classes: list[str]) -> list[str]:
    """Return the lines of the metrics of the predictions."""
    lines = list[str]()
    for one in metrics["values"]:
        values = {f'rows="{key}"': one[key] for key in ("all", "recent")}
        known = {key: math.nan if value is None else value for key, value in values.items()}
        lines += format_metric(one["name"], "gauge", HELP[one["name"]], known)
    if metrics["confusion"] is not None:
        help = "Summed weights of the rows with this label and prediction."
        series = confusion_series(metrics["confusion"], classes)
        lines += format_metric("confusion", "gauge", help, series)
    return lines


def _format_follower(follower: Follower) -> list[str]:
    """Return the lines of the metrics of a follower."""
    lines = list[str]()
    for name, value, help in (
        ("records", follower.lag_records, "Records of the leader that are not learned here."),
        ("seconds", follower.lag_seconds, "Time since all records of the leader were learned."),
    ):
        values = {"": float("nan") if value is None else value}
        lines += format_metric(f"follower_lag_{name}", "gauge", help, values)
    return lines


def _format_challenger(challenger: dict[str, Any] | None) -> list[str]:
    """Return the lines of the metrics of the challenger; without one, they have no values."""
    if challenger is None:
        return format_metric("challenger_rows", "gauge", "Rows compared.", {"": 0})
    lines = format_metric("challenger_rows", "gauge", "Rows compared.", {"": challenger["rows"]})
    # the label `model` is the name of one of several models
    losses = {f'role="{name}"': challenger[f"{name}_loss"] for name in ("champion", "challenger")}
    ends = dict(zip(('end="low"', 'end="high"'), challenger["interval"], strict=True))
    for name, help, values in (
        ("compared_loss", "Average loss of the rows since the challenge began.", losses),
        ("challenger_gain", "Interval of the champion's minus the challenger's loss.", ends),
    ):
        known = {key: math.nan if value is None else value for key, value in values.items()}
        lines += format_metric(name, "gauge", help, known)
    return lines


def _snapshot_age(state: State) -> float | None:
    """Return the seconds since the last snapshot was written; None if the file is missing."""
    try:
        return max(0.0, time.time() - state.snapshot_path.stat().st_mtime)
    except OSError:
        return None


def format_metric(name: str, type: str, help: str, values: dict[str, Any]) -> list[str]:
    """Return the lines of a metric, given its values by their labels."""
    full = f"spanboost_{name}"
    head = [f"# HELP {full} {help}", f"# TYPE {full} {type}"]
    series = (f"{full}{{{labels}}}" if labels else full for labels in values)
    return head + [
        f"{name} {_format_number(value)}"
        for name, value in zip(series, values.values(), strict=True)
    ]


def _format_number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)
