"""What can be said of a service at one moment: for /metrics, and for the live page."""

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
from spanboost.service.engine import Engine
from spanboost.service.state import State

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class RequestCounters:
    """Requests: how many, how they were answered, how long it took."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.seconds: Counter[str] = Counter()
        self.refused = 0  # rows
        self.bodies = 0  # bytes of those that are being worked on

    def note(self, path: str, status: int, seconds: float) -> None:
        """One more request."""
        self.answers[path, status] += 1
        counts = self.buckets.setdefault(path, [0] * (len(BUCKETS) + 1))
        counts[next((k for k, most in enumerate(BUCKETS) if seconds <= most), len(BUCKETS))] += 1
        self.seconds[path] += seconds  # type: ignore[assignment]


def service_figures(engine: Engine, meter: RequestCounters) -> dict[str, Any]:
    """Everything the page shows, in terms of JSON."""
    state = engine.state
    progress, model = state.progress, state.model
    return {
        "time": time.time(),
        "learned": progress.rows,
        "predicted": engine.predicted,
        "duplicates": engine.duplicates,
        "refused": meter.refused,
        "loss": finite_or_none(progress.loss),
        "recent_loss": finite_or_none(progress.recent),
        "waiting": engine.writer.waiting,
        "pending": len(state.pending),
        "pending_dropped": state.pending.dropped,
        "left_out": state.left_out,
        "record": state.learned,
        "snapshot": state.snapshot,
        "journal_bytes": state.journal.bytes,
        "disk_problems": engine.unwritten + engine.unkept,
        "drifts": list(progress.drifts),
        "drifted": progress.drifted,
        "weights": model.weights_,
        "trouble": engine.trouble,
        "curve": [list(map(finite_or_none, point)) for point in list(progress.curve)],
        "classes": class_names(model) if predicts_scores(model.loss_) else [],
        "pairs": _pairs(state),
    }


def _pairs(state: State) -> list[list[float | None]]:
    """The last predictions beside their labels; of classes, the number of each."""
    pairs, loss = list(state.progress.pairs), state.model.loss_
    if predicts_scores(loss) and not isinstance(loss, Softmax):
        pairs = [(float(score > 0), float(label > 0)) for score, label in pairs]
    return [list(map(finite_or_none, pair)) for pair in pairs]


_HELP = {
    "learned": ("learned_rows_total", "counter", "rows learned, since the state folder was made"),
    "predicted": ("predicted_rows_total", "counter", "rows predicted, since the start"),
    "duplicates": ("duplicate_rows_total", "counter", "rows learned before, since the start"),
    "refused": ("refused_rows_total", "counter", "bad rows, since the start"),
    "left_out": ("left_out_rows_total", "counter", "rows in the journal that no model takes"),
    "loss": ("loss", "gauge", "average loss of all rows, each predicted before it was learned"),
    "recent_loss": ("recent_loss", "gauge", "average loss of the last 1000 rows or so"),
    "drifted": ("drifts_total", "counter", "marked drifts, since the state folder was made"),
    "waiting": ("waiting_rows", "gauge", "rows that wait to be journaled or learned"),
    "pending": ("pending_rows", "gauge", "predicted rows that wait for their labels"),
    "pending_dropped": ("pending_dropped_total", "counter", "predicted rows given up unlabelled"),
    "record": ("journal_record", "gauge", "number of the last record that was learned"),
    "snapshot": ("snapshot_record", "gauge", "number of the last record in a snapshot"),
    "journal_bytes": ("journal_bytes", "gauge", "of the journal on the disk"),
    "disk_problems": ("disk_problems_total", "counter", "writes that failed, since the start"),
}


def prometheus_text(engine: Engine, meter: RequestCounters) -> str:
    """The same, as Prometheus reads it (text format 0.0.4)."""
    found = service_figures(engine, meter)
    lines = [*_one("info", "gauge", "the version", {f'version="{__version__}"': 1})]
    for key, (name, kind, words) in _HELP.items():
        value = found[key]
        lines += _one(name, kind, words, {"": float("nan") if value is None else value})
    weights = {f'expert="{name}"': value for name, value in found["weights"].items()}
    lines += _one("expert_weight", "gauge", "of AutoBoost's experts", weights)
    lines += _one("memory_bytes", "gauge", "resident", {"": _memory()})
    answers = {f'path="{path}",status="{code}"': n for (path, code), n in meter.answers.items()}
    lines += _one("requests_total", "counter", "requests, since the start", answers)
    lines += _histogram(meter)
    return "\n".join(lines) + "\n"


def _one(name: str, kind: str, words: str, values: dict[str, Any]) -> list[str]:
    full = f"spanboost_{name}"
    head = [f"# HELP {full} {words}", f"# TYPE {full} {kind}"]
    shown = (f"{full}{{{labels}}}" if labels else full for labels in values)
    return head + [
        f"{name} {_number(value)}" for name, value in zip(shown, values.values(), strict=True)
    ]


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)


def _histogram(meter: RequestCounters) -> list[str]:
    name = "spanboost_request_seconds"
    lines = [f"# HELP {name} from the first byte to the answer", f"# TYPE {name} histogram"]
    for path, counts in list(meter.buckets.items()):
        so_far = 0
        for most, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
            so_far += count
            lines.append(f'{name}_bucket{{path="{path}",le="{most}"}} {so_far}')
        lines.append(f'{name}_sum{{path="{path}"}} {meter.seconds[path]!r}')
        lines.append(f'{name}_count{{path="{path}"}} {so_far}')
    return lines


def _memory() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
