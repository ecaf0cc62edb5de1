"""Execute one run: `python -m benchmarks.accuracy.worker KEY... FILE`."""

import hashlib
import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import spanboost
from benchmarks.accuracy.datasets import SEED, load
from benchmarks.accuracy.methods import METHODS, SHORT, runner
from benchmarks.accuracy.stream import BLOCK, Run


def measure(data: str, order: str, name: str, folder: Path | None, most: int | None) -> dict:
    """Run a method on a data set in one order and score its predictions."""
    method = METHODS[name]
    run_it = runner(name)
    stream = load(data, order, folder, most or method.most)
    span = float(np.ptp(stream.y))
    before = peak_mib()
    run = run_it(stream, method.limit)
    return {
        **score(run, stream.y),
        "span": span,
        "complete": len(run.predictions) == len(stream.y),
        "seconds": round(run.seconds, 3),
        **({"cpu_seconds": round(run.cpu, 3)} if run.cpu else {}),
        "rows_per_s": round(run.rows / run.seconds, 1),
        "peak_mib": round(peak_mib(), 1),
        "data_mib": round(before, 1),
        "threads": run.threads,
        "seed": SEED,
        "load": round(os.getloadavg()[0], 2),
        "versions": versions(method.packages),
        **(
            {"stamp": stamp(), "prefixes": prefixes(run, stream.y)}
            if method.group == "ours"
            else {}
        ),
    }


def score(run: Run, y: np.ndarray) -> dict[str, Any]:
    """Return the loss on the second half of the rows that the run reached."""
    rows = len(run.predictions)
    return {
        "rows": rows,
        "mse": half(run.predictions, y, rows),
        "variance": float(np.var(y[rows // 2 : rows])),
    }


def half(predictions: np.ndarray, y: np.ndarray, rows: int) -> float:
    """Return the mean squared error on the second half of the first `rows` rows."""
    part = slice(rows // 2, rows)
    return float(np.mean((predictions[part] - y[part]) ** 2))


def prefixes(run: Run, y: np.ndarray) -> dict[str, float]:
    """Return the losses on shorter streams, for comparison with runs that end early."""
    most = min(len(run.predictions), SHORT)
    ends = [*range(BLOCK, most + 1, BLOCK), most]
    return {str(end): float(f"{half(run.predictions, y, end):.6g}") for end in ends}


def peak_mib() -> float:
    """Return the peak resident memory of this process, as reported by Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of Python and the installed packages."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def stamp() -> str:
    """Return a hash of the spanboost source, which shows whether a result is outdated."""
    digest = hashlib.sha256()
    root = Path(spanboost.__file__).parent
    for file in sorted(root.rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def main(data: str, order: str, name: str, folder: str, most: str, out: str) -> None:
    """Measure and write the result."""
    found = measure(data, order, name, Path(folder) if folder else None, int(most) or None)
    if not np.isfinite(found["mse"]):
        raise ArithmeticError("some predictions are not finite")
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
