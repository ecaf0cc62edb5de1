"""The metrics of a worker that reads streams."""

import math

from spanboost.service.http.metrics import format_metric
from spanboost.service.streaming.stream_worker import StreamWorker


def format_stream(worker: StreamWorker) -> str:
    """Return the metrics in the text format of Prometheus."""
    counts, problems = worker.counts, worker.problems()
    lags = {
        f'place="{_escape(place)}"': math.nan if lag is None else lag
        for place, lag in counts.lags.items()
    }
    messages = {f'stream="{part}"': number for part, number in counts.messages.items()}
    connected = {f'stream="{part}"': int(why is None) for part, why in problems.items()}
    lines = list[str]()
    for name, type, help, values in (
        ("lag_messages", "gauge", "Messages that were not read yet.", lags),
        ("messages_total", "counter", "Messages read since the start.", messages),
        ("connected", "gauge", "Whether a stream can be reached (1) or not (0).", connected),
        (
            *("predictions_total", "counter", "Predictions written since the start."),
            {"": counts.predictions},
        ),
        (
            *("bad_rows_total", "counter", "Rows set aside or skipped since the start."),
            {"": counts.bad_rows},
        ),
        (
            *("paused", "gauge", "Whether rows wait because too many have no label yet (1)."),
            {"": int(counts.paused)},
        ),
    ):
        lines += format_metric(f"stream_{name}", type, help, values)
    return "\n".join(lines) + "\n"


def _escape(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
