"""Vowpal Wabbit, driven by its own C++ reader from a binary cache file."""

from pathlib import Path
from typing import Any

import numpy as np
import vowpalwabbit

from benchmarks.common import Stream


class Vw:
    """Vowpal Wabbit over one stream: the text is parsed here, once; runs read the cache alone."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        self.rows = len(stream.y)
        self.text, self.cache = folder / "stream.vw", folder / "stream.cache"
        self.predicted = folder / "predictions"
        with self.text.open("w") as file:
            for t, (features, values) in enumerate(active(stream.X)):
                row = " ".join(f"{f}:{v:.9g}" for f, v in zip(features, values, strict=True))
                file.write(f"{stream.y[t]:g} | {row}\n")
        self.run()
        self.text.write_text("")  # a run that still sees every row has read the cache

    def run(self, *options: str) -> None:
        """One pass of progressive validation; parsing is a thread of Vowpal Wabbit's own."""
        source = ["--quiet", "-d", str(self.text), "--cache_file", str(self.cache)]
        workspace = vowpalwabbit.Workspace(arg_list=[*options, *source])
        rows = workspace.get_weighted_examples()
        workspace.finish()
        if rows != self.rows:
            raise RuntimeError(f"Vowpal Wabbit saw {rows:g} rows instead of {self.rows}")

    def predictions(self, *options: str) -> np.ndarray:
        """What it predicts for each row before it learns it."""
        self.run(*options, "-p", str(self.predicted))
        return np.loadtxt(self.predicted, ndmin=1)


def active(X: Any) -> Any:
    """The features of each row that are not 0, and their values, of a dense array or a CSR one."""
    if hasattr(X, "indptr"):
        cuts = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return ((X.indices[a:b], X.data[a:b]) for a, b in cuts)
    return ((np.flatnonzero(row), row[row != 0]) for row in X)
