"""Batches are split so that a progress bar moves, whatever the speed of the model."""

import numpy as np
import pytest

from spanboost.cli.output.pacing import FEWEST, LONG, pace_batches
from spanboost.data.batch import Batch


def pieces(rows, seconds_per_row, compiling=0.0):
    """Return the numbers of rows, and the seconds, of the pieces of batches."""
    now, found = 0.0, []

    def clock():
        return now

    def batches():
        for count in rows:
            X = np.arange(count, dtype=float)[:, None]
            yield Batch(X, X[:, 0], None, "x", np.arange(count))

    for piece in pace_batches(batches(), clock):
        took = piece.rows * seconds_per_row + (0 if found else compiling)
        found.append((piece, took))
        now += took
    return found


@pytest.mark.parametrize("speed", [1e-7, 1e-4, 1e-3, 0.1])
def test_no_piece_takes_long_and_all_rows_come(speed):
    found = pieces([5000, 8192, 3], speed, compiling=30.0)
    X = np.concatenate([piece.X[:, 0] for piece, _ in found])
    assert X.tolist() == [*range(5000), *range(8192), *range(3)]
    least = FEWEST * speed
    assert all(took <= max(2 * LONG, least) for _, took in found[1:])


def test_a_fast_model_gets_large_pieces():
    found = pieces([8192] * 20, 1e-7)
    assert len(found) < 40
    assert found[-1][0].rows == 8192
