"""The picture of error against speed: the methods on its front, and the file in docs."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks import pareto
from benchmarks.accuracy import results as accuracy
from benchmarks.accuracy.results import Key
from benchmarks.pareto import Point, mean_results, pareto_front
from benchmarks.results_files import read

NUMBERS = st.integers(1, 6).map(float)


@given(st.lists(st.builds(Point, st.just("trees"), NUMBERS, NUMBERS), min_size=1, max_size=12))
def test_no_method_beats_one_on_the_front(points):
    def beaten(one):
        return any(
            other.speed >= one.speed and other.error <= one.error and other[1:] != one[1:]
            for other in points
        )

    expected = {one for one in points if not beaten(one)}
    assert set(pareto_front(points)) == expected


def test_the_stored_results_have_all_budgets():
    points, sets = mean_results(read(accuracy.FILE, Key))
    assert {"auto-fast", "auto-default", "auto-thorough"} <= {one.method for one in points}
    assert len(sets) >= pareto.LEAST
    assert pareto.PICTURE.is_file()
