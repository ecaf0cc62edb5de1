"""Vowpal Wabbit, reading a binary cache file with its own C++ reader."""

from pathlib import Path
from typing import Any

import numpy as np
import vowpalwabbit

from benchmarks.common import Stream


class Vw:
    """Vowpal Wabbit on one stream. The text is parsed once; runs read only the cache."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        self.rows = len(stream.y)
        self.text, self.cache = folder / "stream.vw", folder / "stream.cache"
        self.predicted = folder / "predictions"
        with self.text.open("w") as file:
            for t, (features, values) in enumerate(active(stream.X)):
                row = " ".join(f"{f}:{v:.9g}" for f, v in zip(features, values, strict=True))
                file.write(f"{stream.y[t]:g} | {row}\n")
        self.run()
        self.text.write_text("")  # so a run that sees every row has read the cache

    def run(self, *options: str) -> None:
        """Run one pass of progressive validation; Vowpal Wabbit parses in a second thread."""
        source = ["--quiet", "-d", str(self.text), "--cache_file", str(self.cache)]
        workspace = vowpalwabbit.Workspace(arg_list=[*options, *source])
        rows = workspace.get_weighted_examples()
        workspace.finish()
        if rows != self.rows:
            raise RuntimeError(f"Vowpal Wabbit read {rows:g} rows, expected {self.rows}")

    def predictions(self, *options: str) -> np.ndarray:
        """Return the prediction for each row, made before the row is learned."""
        self.run(*options, "-p", str(self.predicted))
        return np.loadtxt(self.predicted, ndmin=1)


def active(X: Any) -> Any:
    """Yield the nonzero features of each row and their values, from a dense or CSR array."""
    if hasattr(X, "indptr"):
        cuts = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return ((X.indices[a:b], X.data[a:b]) for a, b in cuts)
    return ((np.flatnonzero(row), row[row != 0]) for row in X)
