"""The metrics of the service, for Prometheus and for the dashboard."""

import math
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from spanboost import __version__
from spanboost.checks import finite_or_none
from spanboost.losses import Softmax, predicts_scores
from spanboost.models.predictions import class_names
from spanboost.rows.labels import LabelHealth
from spanboost.service.engine import Engine
from spanboost.service.state import State

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class RequestCounters:
    """Counts requests by path and status, and their durations by path."""

    def __init__(self) -> None:
        self.responses: Counter[tuple[str, int]] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()
        self.refused_rows = 0
        self.open_body_bytes = 0  # size of the bodies of all open requests

    def record(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.responses[path, status] += 1
        counts = self.buckets.setdefault(path, [0] * (len(BUCKETS) + 1))
        counts[next((k for k, limit in enumerate(BUCKETS) if seconds <= limit), len(BUCKETS))] += 1
        self.seconds[path] += seconds  # type: ignore[assignment]


def collect_metrics(engine: Engine, counters: RequestCounters) -> dict[str, Any]:
    """Return the current values of all metrics of the dashboard, as JSON values."""
    state = engine.state
    progress, model = state.progress, state.model
    labels = model.label_health
    return {
        "time": time.time(),
        "learned": progress.rows,
        "predicted": engine.predicted,
        "duplicates": engine.duplicates,
        "refused": counters.refused_rows,
        "loss": finite_or_none(progress.loss),
        "recent_loss": finite_or_none(progress.recent),
        "waiting": engine.writer.waiting,
        "pending": len(state.pending),
        "pending_dropped": state.pending.dropped,
        "left_out": state.left_out,
        "record": state.learned_record,
        "snapshot": state.snapshot_record,
        "journal_bytes": state.journal.size,
        "disk_problems": engine.failed_writes + engine.failed_pending_writes,
        "drifts": list(progress.drifts),
        "drifted": progress.drifted,
        "weights": model.weights_,
        "clipped": labels.clipped,
        "range_changes": _range_changes(labels),
        "nans": state.nans,
        "trouble": engine.failure,
        "curve": [list(map(finite_or_none, point)) for point in list(progress.curve)],
        "classes": class_names(model) if predicts_scores(model.loss_) else [],
        "pairs": _pairs(state),
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


_METRICS = {
    "learned": ("learned_rows_total", "counter", "Rows learned since the folder was created."),
    "predicted": ("predicted_rows_total", "counter", "Rows predicted since the start."),
    "duplicates": ("duplicate_rows_total", "counter", "Duplicate rows since the start."),
    "refused": ("refused_rows_total", "counter", "Bad rows refused since the start."),
    "left_out": ("left_out_rows_total", "counter", "Rows in the journal that the model rejected."),
    "loss": ("loss", "gauge", "Average loss of all rows, each predicted before it was learned."),
    "recent_loss": ("recent_loss", "gauge", "Average loss of the last 1,000 rows, approximately."),
    "clipped": ("labels_clipped_total", "counter", "Labels learned as if closer to the others."),
    "nans": ("state_nans", "gauge", "NaN in the state of the model, counted at snapshots."),
    "drifted": ("drifts_total", "counter", "Drifts detected since the folder was created."),
    "waiting": ("waiting_rows", "gauge", "Rows in the queue for the journal and the model."),
    "pending": ("pending_rows", "gauge", "Predicted rows that wait for their labels."),
    "pending_dropped": ("pending_dropped_total", "counter", "Pending rows dropped without label."),
    "record": ("journal_record", "gauge", "Number of the last journal record that was learned."),
    "snapshot": ("snapshot_record", "gauge", "Number of the last journal record in a snapshot."),
    "journal_bytes": ("journal_bytes", "gauge", "Size of the journal on disk."),
    "disk_problems": ("disk_problems_total", "counter", "Failed writes since the start."),
}


def prometheus_text(engine: Engine, counters: RequestCounters) -> str:
    """Return the metrics in the text format of Prometheus (0.0.4)."""
    current = collect_metrics(engine, counters)
    lines = _format_metric("info", "gauge", "Version.", {f'version="{__version__}"': 1})
    for key, (name, type, help) in _METRICS.items():
        value = current[key]
        lines += _format_metric(name, type, help, {"": float("nan") if value is None else value})
    weights = {f'expert="{name}"': value for name, value in current["weights"].items()}
    lines += _format_metric("expert_weight", "gauge", "Weights of AutoBoost's experts.", weights)
    changes = {f'kind="{kind}"': row for kind, row in current["range_changes"].items()}
    help = "Rows learned up to the last change of the label range."
    lines += _format_metric("label_range_changed_row", "gauge", help, changes)
    lines += _format_metric("memory_bytes", "gauge", "Resident memory.", {"": _resident_memory()})
    responses = {
        f'path="{path}",status="{code}"': n for (path, code), n in counters.responses.items()
    }
    lines += _format_metric("requests_total", "counter", "Requests since the start.", responses)
    lines += _format_histogram(counters)
    return "\n".join(lines) + "\n"


def _format_metric(name: str, type: str, help: str, values: dict[str, Any]) -> list[str]:
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


def _format_histogram(counters: RequestCounters) -> list[str]:
    name = "spanboost_request_seconds"
    lines = [
        f"# HELP {name} Time from the first byte of a request to the end of its response.",
        f"# TYPE {name} histogram",
    ]
    for path, counts in list(counters.buckets.items()):
        total = 0
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{path="{path}",le="{limit}"}} {total}')
        lines.append(f'{name}_sum{{path="{path}"}} {counters.seconds[path]!r}')
        lines.append(f'{name}_count{{path="{path}"}} {total}')
    return lines


def _resident_memory() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
