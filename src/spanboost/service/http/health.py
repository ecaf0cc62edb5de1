"""The answers to health checks and monitoring, from the first second to the last one."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from spanboost.service.http.metrics import RequestCounters, format_workers, prometheus_text
from spanboost.service.http.startup import REPLAYING, StartProgress
from spanboost.service.http.stream_metrics import format_stream
from spanboost.service.http.worker_pool import WorkerPool, describe_workers
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.follower import Follower
from spanboost.service.streaming.stream_worker import StreamWorker

STOPPING = "the server is stopping"


class Health:
    """What the process is doing: starting, ready, failing or stopping."""

    def __init__(self, counters: RequestCounters) -> None:
        self.counters, self.progress = counters, StartProgress()
        self.engine: Engine | None = None  # None until the service has started
        self.follower: Follower | None = None  # None unless this server copies a leader
        self.workers: WorkerPool | None = None  # None if this is the only process
        self.stream: StreamWorker | None = None  # None unless this server reads streams
        self.start_failed = False  # the log has the reason, which may name folders
        self.stopping = asyncio.Event()

    async def healthz(self, request: Request) -> Response:
        """Tell that the process responds."""
        return JSONResponse({"status": "alive"})

    async def readyz(self, request: Request) -> Response:
        """Tell whether the service can predict and learn, and the state of each part."""
        content = self.describe()
        if content["status"] == "ready":
            return JSONResponse(content)
        return JSONResponse(content, 503, {"Retry-After": "5" if self.engine else "1"})

    async def metrics(self, request: Request) -> Response:
        """Return metrics for Prometheus."""
        return PlainTextResponse(self.metrics_text(), media_type="text/plain; version=0.0.4")

    def metrics_text(self) -> str:
        """Return metrics in the text format of Prometheus."""
        ready = self.describe()["status"] == "ready"
        text = prometheus_text(self.engine, self.counters, self.progress, ready, self.follower)
        if self.stream is not None:
            text += format_stream(self.stream)
        if self.workers is None or self.engine is None:
            return text
        return text + format_workers(self.workers, self.engine.state.journal.last)

    def describe(self) -> dict[str, Any]:
        """Return the status, and `error` unless it is `ready`."""
        checks = {} if self.engine is None else self.engine.checks()
        problem = next((f"{part}: {what}" for part, what in checks.items() if what), None)
        if self.stopping.is_set():
            content: dict[str, Any] = {"status": "stopping", "error": STOPPING}
        elif self.engine is None:
            content = self._describe_start()
        elif problem is not None:
            content = {"status": "failing", "error": problem}
        else:
            content = {"status": "ready"}
        if self.engine is not None:
            # a failed snapshot only makes the next start slower, so the service stays ready
            checks |= {"snapshots": self.engine.snapshot_writes.problem}
            if self.follower is not None:  # without its leader, a follower still predicts
                checks |= {"leader": self.follower.problem}
            if self.stream is not None:  # without its streams, a worker still predicts
                checks |= self.stream.problems()
            if self.workers is not None:  # without them, this process answers all requests
                content |= {
                    "workers": describe_workers(self.workers, self.engine.state.journal.last)
                }
            content |= {"checks": {part: what or "ok" for part, what in checks.items()}}
        return content

    def _describe_start(self) -> dict[str, Any]:
        if self.start_failed:
            why = "the model could not be started; the log of the server has the reason"
            return {"status": "failed", "error": why}
        progress = self.progress
        content = {
            "status": "starting",
            "error": f"the server is starting: {progress}",
            "phase": progress.phase,
        }
        if progress.phase == REPLAYING:
            return content | {"replayed_bytes": progress.done, "journal_bytes": progress.size}
        return content
