"""Bounded replay: equivalent to a stream in which earlier rows appear again."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
from forged import changed, file_arrays, read_file
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy_free import Csr

from spanboost import (
    HullBoost,
    LinearBall,
    LinearSGD,
    ModelFileError,
    Network,
    Rows,
    SpanBoost,
    Stumps,
    Trees,
    load,
    save,
)
from spanboost.cli.main import main
from spanboost.compiling.kernels import plain
from spanboost.losses import Softmax
from spanboost.rows.block import block_of
from spanboost.rows.replay import ReplayMemory
from spanboost.theory.regret import audit_hull

T, TIMES, SIZE, SEED = 60, 2, 9, 7
WORD = 2**64


class Mean:
    """A learner that is a plain object."""

    def __init__(self):
        self.sum, self.rows = 0.0, 0

    def predict_one(self, x):
        return self.sum / max(self.rows, 1)

    def learn_one(self, x, y):
        self.sum, self.rows = self.sum + y, self.rows + 1


SMALL = {"depth": 3, "candidates": 8}
LEARNERS = {
    "linear": (LinearSGD(0.3), LinearSGD(0.3)),
    "stumps": (Stumps(), Stumps()),
    "network": (Network(hidden=3), Network(hidden=3)),
    "ball": (LinearBall(20.0), LinearBall(20.0)),
    "objects": (Mean(), Mean()),
    # a row that is learned three times counts as evidence once
    "trees": (
        Trees(**SMALL, evidence=0.5, grace=5, delay=2),
        Trees(**SMALL, evidence=0.5 * 3**1.5, grace=5, delay=6),
    ),
}
EVERY = pytest.mark.parametrize("name", LEARNERS)


def stream(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, 4)).clip(-3, 3)
    X[rng.random((T, 4)) < 0.3] = 0
    return X, np.tanh(X[:, 0] - X[:, 1]) / 2


def split_mix(z):
    """Compute a step of SplitMix64 with Python integers."""
    z = (z + 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def replayed_rows(before, times=TIMES, size=SIZE):
    """Return the numbers of the rows to replay after row `before`."""
    turns = [split_mix((before * times + k + split_mix(SEED)) % WORD) for k in range(times)]
    steps = [int((turn >> 11) / 2**53 * min(before, size)) for turn in turns]
    return [before - 1 - step for step in steps] if before else []


def learn_by_hand(model, X, y, weights, factor=1.0):
    """Learn each row, then the rows to replay, one at a time, with a booster without replay."""
    answers, learned = [], []
    for t in range(len(y)):
        answers.append(model.learn_many(X[t : t + 1], y[t : t + 1], weights[t : t + 1])[0])
        if weights[t] == 0:
            continue
        for number in replayed_rows(len(learned)):
            s = learned[number]
            model.learn_many(X[s : s + 1], y[s : s + 1], factor * weights[s : s + 1])
        learned.append(t)
    return np.array(answers)


@pytest.mark.parametrize("booster", [SpanBoost, HullBoost])
@EVERY
def test_replay_equals_a_stream_with_repeated_rows(name, booster):
    X, y = stream()
    weights = np.where(np.arange(T) % 5 == 3, 0.0, 1.0)
    once, again = LEARNERS[name]
    with plain():
        model = booster(once, 3, replay=TIMES, memory=SIZE, seed=SEED)
        found = model.learn_many(X, y, weights)
        expected = learn_by_hand(booster(again, 3, seed=SEED), X, y, weights)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["linear", "trees"])
def test_sparse_rows_codes_and_weights_are_replayed(name):
    X, y = stream()
    codes = np.random.default_rng(1).integers(-1, 4, (T, 2))
    weights = np.random.default_rng(2).uniform(0.2, 1, T)
    once, again = LEARNERS[name]
    with plain():
        model = SpanBoost(once, 3, replay=TIMES, memory=SIZE, seed=SEED)
        found = model.learn_many(Rows(Csr(X), codes), y, weights)
        plain_one = SpanBoost(again, 3, seed=SEED)
        answers = []
        for t in range(T):
            each = []
            for s in (t, *replayed_rows(t)):
                row = Rows(Csr(X[s : s + 1]), codes[s : s + 1])
                each.append(plain_one.learn_many(row, y[s : s + 1], weights[s : s + 1])[0])
            answers.append(each[0])
    np.testing.assert_array_equal(found, answers)


def test_a_growing_range_rescales_the_remembered_labels():
    X, y = stream()
    y = 1000 * y * np.linspace(0.1, 3, T)  # the range grows
    weights = np.ones(T)
    with plain():
        options = {"label_range": "auto", "seed": SEED}
        expected = learn_by_hand(SpanBoost(LinearSGD(), 3, **options), X, y, weights)
        model = SpanBoost(LinearSGD(), 3, replay=TIMES, memory=SIZE, **options)
        found = model.learn_many(X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)  # float32, another order


@pytest.mark.parametrize("name", ["linear", "ball", "objects", "trees"])
@settings(max_examples=10, deadline=None)
@given(cuts=st.sets(st.integers(1, T - 1), max_size=6))
def test_blocks_of_any_size_give_the_same_model(name, cuts):
    X, y = stream()
    learner = LEARNERS[name][0]
    with plain():
        whole = SpanBoost(learner, 3, replay=TIMES, memory=SIZE).learn_many(X, y)
        model = SpanBoost(learner, 3, replay=TIMES, memory=SIZE)
        edges = [0, *sorted(cuts), T]
        parts = [
            model.learn_one(X[a], y[a]) if b == a + 1 else model.learn_many(X[a:b], y[a:b])
            for a, b in pairwise(edges)
        ]
    np.testing.assert_array_equal(np.hstack(parts), whole)


def test_blocks_longer_than_one_piece():
    X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    y = X[:, 0] / 2
    models = [SpanBoost(LinearSGD(), 2, replay=1, memory=300) for _ in range(2)]
    whole = models[0].learn_many(X, y)
    ones = [models[1].learn_one(x, label) for x, label in zip(X, y, strict=True)]
    np.testing.assert_array_equal(whole, ones)


@pytest.mark.parametrize(("times", "size", "weight"), [(2, 50, 1.0), (1, 7, 0.3), (3, 1000, 0.7)])
def test_single_rows_draw_what_blocks_draw(times, size, weight):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.uniform(-1, 1, (200, 1)).astype(np.float32)
    weights = rng.choice([0.0, 0.5, 1.0], 200).astype(np.float32)
    block = block_of(X, np.float32, None)
    one, other = (ReplayMemory(times, size, 5, weight) for _ in range(2))
    for memory in (one, other):
        memory.reserve(block, 1, np.float32)
    single = [piece for t in range(200) for piece in one.pieces(block, y, weights, t, t + 1)]
    blocks = list(other.pieces(block, y, weights, 0, 200))
    for name in ("labels", "weights"):
        got, want = (
            np.concatenate([getattr(piece, name) for piece in pieces])
            for pieces in (single, blocks)
        )
        assert got.tobytes() == want.tobytes()
        assert len(got) > 200
    rows = [np.concatenate([piece.rows.X for piece in pieces]) for pieces in (single, blocks)]
    assert rows[0].tobytes() == rows[1].tobytes()


@pytest.mark.parametrize("name", ["linear", "stumps", "ball"])
def test_replayed_rows_can_weigh_less(name):
    X, y = stream()
    weights = np.where(np.arange(T) % 5 == 3, 0.0, 0.5 + np.arange(T) % 2)
    once, again = LEARNERS[name]
    with plain():
        model = SpanBoost(once, 3, replay=TIMES, memory=SIZE, seed=SEED, replay_weight=0.25)
        found = model.learn_many(X, y, weights)
        expected = learn_by_hand(SpanBoost(again, 3, seed=SEED), X, y, weights, 0.25)
    np.testing.assert_array_equal(found, expected)


def test_a_learner_without_weights_cannot_weigh_replayed_rows():
    with pytest.raises(ValueError, match="replay_weight must be 1: the learner does not support"):
        SpanBoost(Mean(), 2, replay=1, replay_weight=0.5)


def test_only_the_last_rows_are_drawn():
    X, y = stream()
    with plain():
        model = SpanBoost(LinearSGD(), 3, replay=TIMES, memory=1)
        expected = SpanBoost(LinearSGD(), 3)
        answers = []
        for t in range(T):
            answers.append(expected.learn_one(X[t], y[t]))
            for _ in range(TIMES if t else 0):
                expected.learn_one(X[t - 1], y[t - 1])
        np.testing.assert_array_equal(model.learn_many(X, y), answers)


def test_compiled_and_plain_agree():
    X, y = stream()
    make = lambda: SpanBoost(LEARNERS["trees"][0], 3, replay=TIMES, memory=SIZE)  # noqa: E731
    compiled = make().learn_many(X, y)
    with plain():
        np.testing.assert_array_equal(make().learn_many(X, y), compiled)


@pytest.mark.parametrize("seen", [1, 5, 40])
@pytest.mark.parametrize("kind", ["dense", "sparse", "codes", "names"])
@pytest.mark.parametrize("name", ["linear", "trees"])
def test_files_keep_the_rows_for_replay(name, kind, seen, tmp_path):
    X, y = stream()
    codes = np.random.default_rng(1).integers(-1, 4, (T, 2))
    rows = {
        "dense": lambda a, b: X[a:b],
        "sparse": lambda a, b: Csr(X[a:b]),
        "codes": lambda a, b: Rows(None, codes[a:b]),
        "names": lambda a, b: [{f"x{j}": v for j, v in enumerate(x) if v} for x in X[a:b]],
    }[kind]
    with plain():
        model = SpanBoost(LEARNERS[name][0], 3, replay=TIMES, memory=SIZE)
        model.learn_many(rows(0, seen), y[:seen])
        save(model, tmp_path / "whole.sb")
        other = SpanBoost(LEARNERS[name][0], 3, replay=TIMES, memory=SIZE)
        for t in range(seen):
            other.learn_many(rows(t, t + 1), y[t : t + 1])
        save(other, tmp_path / "rows.sb")
        assert (tmp_path / "rows.sb").read_bytes() == (tmp_path / "whole.sb").read_bytes()
        again = load(tmp_path / "whole.sb")
        np.testing.assert_array_equal(
            again.learn_many(rows(seen, T), y[seen:]), model.learn_many(rows(seen, T), y[seen:])
        )


def test_a_narrow_row_after_a_file_of_wide_ones(tmp_path):
    X, y = stream()
    model = SpanBoost(LEARNERS["trees"][0], 3, replay=TIMES, memory=SIZE)
    model.learn_many(Csr(X[:20]), y[:20])
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    narrow = Csr(np.eye(1, 4))
    assert again.learn_many(narrow, [0.1])[0] == model.learn_many(narrow, [0.1])[0]


@pytest.mark.parametrize("name", ["linear", "trees"])
def test_empty_rows(name, tmp_path):
    model = SpanBoost(LEARNERS[name][0], 3, replay=TIMES, memory=1)
    model.learn_one({"a": 1.0}, 0.1)
    model.learn_one({}, 0.2)
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    assert again.learn_one({"a": 2.0}, 0.1) == model.learn_one({"a": 2.0}, 0.1)


@pytest.mark.slow
@EVERY
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 99), stop=st.integers(1, T - 1))
def test_growing_ranges_widths_and_weights_whatever_the_blocks(name, seed, stop, tmp_path_factory):
    if name in ("objects", "ball"):
        return  # they need a fixed range
    rng = np.random.default_rng(seed)
    y = np.exp(rng.normal(size=T).cumsum() / 5)
    weights = rng.choice([0.0, 0.5, 1.0], T)
    rows = [{f"x{j}": float(v) for j, v in enumerate(rng.normal(size=rng.integers(0, t + 1)))}
            for t in range(T)]  # fmt: skip
    models = [
        SpanBoost(LEARNERS[name][0], 3, label_range="auto", replay=TIMES, memory=SIZE)
        for _ in range(2)
    ]
    path = tmp_path_factory.mktemp("replay") / "model.sb"
    with plain(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = models[0].learn_many(rows, y, weights)
        first = models[1].learn_many(rows[:stop], y[:stop], weights[:stop])
        save(models[1], path)
        again = load(path)
        rest = [
            again.learn_one(*row) for row in zip(rows[stop:], y[stop:], weights[stop:], strict=True)
        ]
    np.testing.assert_array_equal(np.concatenate([first, rest]), whole)


def test_memory_holds_only_the_active_features():
    model = SpanBoost(LinearSGD(), 2, replay=1, memory=10_000)
    model.learn_many(Csr(np.ones((1, 5000))), [0.1])
    model.learn_many(Csr(np.eye(3, 5000)), [0.1] * 3)
    assert sum(len(columns) for columns, _ in model.core.memory.rows.entries.values()) == 5003


def test_rows_are_copied_before_they_are_remembered():
    row, seen = {"a": 0.0}, []

    class Notes(Mean):
        def learn_one(self, x, y):
            seen.append(dict(x))

        def __deepcopy__(self, memo):
            return self

    model = SpanBoost(Notes(), 1, replay=TIMES, memory=1)
    for value in (1.0, 2.0):
        row["a"] = value
        model.learn_one(row, 0.1)
    assert [x["a"] for x in seen] == [1, 2, 1, 1]


def test_rows_that_raised_an_error_are_not_replayed():
    class Picky(Mean):
        def learn_one(self, x, y):
            if x[0] > 0.9:
                raise OverflowError
            super().learn_one(x, y)

    model = SpanBoost(Picky(), 1, replay=TIMES, memory=SIZE)
    model.learn_many([[0.1], [0.2]], [0.1, 0.2])
    with pytest.raises(OverflowError):
        model.learn_many([[0.3], [1.0]], [0.1, 0.2])
    assert model.core.memory.learned == 3  # the row before the error was learned
    model.learn_many([[0.5]] * 50, [0.1] * 50)


def test_large_replay_counts():
    X, y = stream()
    with plain():
        model = SpanBoost(LinearSGD(), 2, replay=1000, memory=3)
        model.learn_many(X[:4], y[:4])
        again = SpanBoost(LinearSGD(), 2, replay=1000, memory=3)
        for x, label in zip(X[:4], y[:4], strict=True):
            again.learn_one(x, label)
        np.testing.assert_array_equal(model.predict_many(X), again.predict_many(X))


def test_the_size_of_a_file_is_bounded_by_the_memory(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (800, 3))
    model, sizes = SpanBoost(LinearSGD(), 2, replay=1, memory=100), []
    path = tmp_path / "model.sb"
    model.learn_many(X[:600], X[:600, 0])  # more rows than a sample has
    for part in range(8):
        model.learn_many(X[100 * part : 100 * part + 100], X[:100, 0])
        save(model, path)
        header, arrays = read_file(path)  # unpacked: how well rows compress varies
        sizes.append(len(json.dumps(header)) + sum(array.nbytes for array in arrays.values()))
        assert path.stat().st_size < sizes[0]
    assert max(sizes) - min(sizes) < 64


BAD = {
    "too few": lambda name, array: array[:-1] if name.endswith("weights") else array,
    "no weight": lambda name, array: array * 0 if name.endswith("weights") else array,
    "no number": lambda name, array: array * np.nan if name.endswith("labels") else array,
    "infinite": lambda name, array: array + np.inf if name.endswith("memory.X") else array,
    "too wide": lambda name, array: (
        np.tile(array, 2) if name.endswith("memory.X") and array.ndim == 2 else array
    ),
    "endless": lambda name, array: array / 0 if name.endswith("weights") else array,
    "too far": lambda name, array: array + 1000 if name.endswith("indices") else array,
}


@pytest.mark.parametrize("bad", BAD)
def test_files_with_invalid_replay_rows_are_refused(bad, tmp_path):
    X, y = stream()
    rows = Csr(X) if bad == "too far" else X
    with plain():
        model = SpanBoost(LEARNERS["trees"][0], 3, replay=TIMES, memory=SIZE)
        model.learn_many(rows, y)
        save(model, tmp_path / "good.sb")
    tensors = file_arrays(tmp_path / "good.sb")
    with np.errstate(divide="ignore"):
        forged = {name: BAD[bad](name, array) for name, array in tensors.items()}
    assert any(forged[name] is not tensors[name] for name in tensors)
    changed(tmp_path / "good.sb", tensors=lambda arrays: forged)
    with pytest.raises(ModelFileError):
        load(tmp_path / "good.sb")


def learned_classes(path):
    """Write a model of three classes that replays rows; return it, its rows and its labels."""
    X, y = stream()
    classes = np.digitize(y, [-0.3, 0.3])
    model = SpanBoost(LinearSGD(), 3, loss=Softmax(3), D=6.0, replay=TIMES, memory=SIZE)
    model.learn_many(X, classes)
    save(model, path)
    return model, X, classes


def test_rows_for_replay_keep_class_numbers(tmp_path):
    with plain():
        _, _, classes = learned_classes(tmp_path / "model.sb")
    labels = file_arrays(tmp_path / "model.sb")["memory.labels"]
    np.testing.assert_array_equal(labels[:, 0], classes[-len(labels) :])


def test_files_with_unit_vectors_for_replay_continue_the_same(tmp_path):
    """Earlier versions kept the labels of classes as unit vectors."""
    path = tmp_path / "model.sb"
    with plain():
        model, X, classes = learned_classes(path)
        labels = file_arrays(path)["memory.labels"]
        vectors = np.eye(3, dtype=labels.dtype)[labels[:, 0].astype(int)]
        changed(path, tensors=lambda arrays: arrays | {"memory.labels": vectors})
        again = load(path)
        np.testing.assert_array_equal(again.learn_many(X, classes), model.learn_many(X, classes))


@pytest.mark.parametrize("bad", [3.0, -1.0, 0.5, np.nan])
def test_files_with_invalid_classes_for_replay_are_refused(bad, tmp_path):
    with plain():
        learned_classes(tmp_path / "model.sb")
    labels = file_arrays(tmp_path / "model.sb")["memory.labels"].copy()
    labels[0] = bad
    changed(tmp_path / "model.sb", tensors=lambda arrays: arrays | {"memory.labels": labels})
    with pytest.raises(ModelFileError, match="the rows for replay are invalid"):
        load(tmp_path / "model.sb")


def test_memory_without_replay_is_refused(tmp_path):
    X, y = stream()
    with plain():
        model = SpanBoost(LinearSGD(), 3, replay=TIMES, memory=SIZE)
        model.learn_many(X, y)
        save(model, tmp_path / "good.sb")

    def without(header):
        header["parameters"]["replay"] = 0

    changed(tmp_path / "good.sb", without)
    with pytest.raises(ModelFileError, match="the file holds rows for replay that are never read"):
        load(tmp_path / "good.sb")


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_replay_rows_that_are_arrays_are_checked(dtype, tmp_path):
    X, y = stream()
    model = SpanBoost(LinearBall(20.0), 3, replay=TIMES, memory=SIZE)
    model.learn_many(X, y)
    save(model, tmp_path / "good.sb")
    load(tmp_path / "good.sb")
    nothing = np.full((SIZE, 4), np.nan, dtype)
    changed(tmp_path / "good.sb", tensors=lambda arrays: arrays | {"memory.X": nothing})
    with pytest.raises(
        ModelFileError, match="the rows for replay are not of the kind that the model reads"
    ):
        load(tmp_path / "good.sb")


@pytest.mark.parametrize(
    "bad",
    [{"replay": -1}, {"replay": 1.5}, {"replay": True}, {"replay": 2000}, {"memory": 0}],
    ids=str,
)
def test_bad_parameters(bad):
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be an integer from .*got"):
        SpanBoost(LinearSGD(), 3, **bad)


def test_audits_refuse_replay():
    X, y = stream()
    values = np.column_stack([X[:, 0] / 5, -X[:, 0] / 5])
    with pytest.raises(ValueError, match="rows that are learned once"):
        audit_hull(HullBoost(LinearBall(20.0), 3, feedback="linear", replay=1), X, y, values)


def test_replay_on_the_command_line(tmp_path, capsys):
    X, y = stream()
    lines = ["a,b,c,d,label", *(",".join(map(str, [*x, v])) for x, v in zip(X, y, strict=True))]
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n")
    words = ["--replay", "2", "--memory", "9", "-n", "5", "--quiet"]
    out = str(tmp_path / "model.sb")
    assert main(["train", str(tmp_path / "all.csv"), "-o", out, *words]) == 0
    assert main(["inspect", out, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["parameters"]["replay"], shown["parameters"]["memory"]) == (2, 9)
    assert shown["parameters"]["learner"]["class"] == "Trees"
    model = SpanBoost(Trees(), 5, label_range="auto", replay=2, memory=9)
    model.learn_many(X, y)
    np.testing.assert_array_equal(load(out).predict_many(X), model.predict_many(X))
    assert main(["train", str(tmp_path / "all.csv"), "-o", out, "--memory", "9", "-n", "5"]) == 2
    assert "--memory requires --replay" in capsys.readouterr().err
