"""Trees in files of format 2, where each tree had room for all nodes that it could have."""

import numpy as np
import pytest
from banks import stream
from forged import changed

from spanboost import ModelFileError, SpanBoost, Trees, load, save
from spanboost.learners.tree_selection import select_trees
from spanboost.losses import Softmax

NODE_TABLES = ("place", "threshold", "weight", "mean", "spread")
RECORD_TABLES = ("place", "table", "total", "seen", "phases")
DEPTH = 6


def old_tensors(bank):
    """Return a function that replaces the arrays of pools by those of format 2."""

    def convert(tensors):
        nodes, records = {}, {}
        for tree in range(len(bank.start)):
            visit(bank, tree, tree, 0, 0, nodes, records)
        mine = {key: value for key, value in tensors.items() if not is_pooled(key)}
        touched = sorted(key for key, v in nodes.items() if bank.weight[v] > 0)
        at = [nodes[key] for key in touched]
        for name in NODE_TABLES:
            mine[f"bank.{name}"] = getattr(bank, name)[at]
        mine["bank.place"] = np.where(bank.link[at] > 0, bank.place[at], -1).astype(np.int32)
        room = 2 ** (DEPTH + 1) - 1
        mine["bank.weight.touched"] = np.array([tree * room + v for tree, v in touched])
        held = sorted(records)
        for name in RECORD_TABLES:
            table = getattr(bank.candidates, name)
            mine[f"bank.candidates.{name}"] = table[[records[key] for key in held]]
        mine["bank.candidates.phases.touched"] = np.array(
            [tree * 2 ** (DEPTH - 1) + leaf for tree, leaf in held]
        )
        return mine

    return convert


def is_pooled(key):
    names = (*NODE_TABLES, "link", "used", "weight.touched")
    held = (*RECORD_TABLES, "owner", "used", "phases.touched")
    return key in {f"bank.{n}" for n in names} | {f"bank.candidates.{n}" for n in held}


def visit(bank, tree, v, heap, level, nodes, records):
    """Number the nodes below v as format 2 did; `heap` is the number of v."""
    nodes[tree, heap] = v
    if bank.link[v] > 0:
        for side in (0, 1):
            below = 2 * heap + 1 + side
            visit(bank, tree, bank.link[v] + side, below, level + 1, nodes, records)
    elif bank.link[v] < 0:
        leftmost = (heap + 1) * 2 ** (DEPTH - 1 - level) - 2 ** (DEPTH - 1)
        records[tree, leftmost] = -1 - bank.link[v]


def old_file(path, rows=900, classes=0):
    """Write a file of format 2; return the model, and rows it has not learned."""
    X, y = stream(rows + 300, missing=False)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    learner = Trees(depth=DEPTH, candidates=16, evidence=1.0, grace=8, delay=3)
    model = SpanBoost(learner, 5, 0.3, loss=Softmax(classes) if classes else "squared")
    model.learn_many(X[:rows], y[:rows])
    save(model, path)
    bank = model.core.state.bank
    ordered = select_trees(bank, np.arange(len(bank.start)))
    changed(path, lambda h: h.update(format=2), old_tensors(ordered))
    return model, X[rows:], y[rows:]


@pytest.mark.parametrize("classes", [0, 3])
def test_old_trees_predict_and_learn_on_bit_for_bit(classes, tmp_path):
    model, X, y = old_file(tmp_path / "old.sb", classes=classes)
    bank = model.core.state.bank
    assert bank.used[0] > 60
    assert 5 < bank.candidates.used[0] < np.count_nonzero(bank.link <= 0)  # some are full
    loaded = load(tmp_path / "old.sb")
    assert loaded.predict_many(X).tobytes() == model.predict_many(X).tobytes()
    assert loaded.learn_many(X, y).tobytes() == model.learn_many(X, y).tobytes()
    assert loaded.core.state.bank.used[0] == bank.used[0]


def test_old_trees_that_have_just_begun_load(tmp_path):
    model, X, y = old_file(tmp_path / "old.sb", rows=1)
    assert load(tmp_path / "old.sb").learn_many(X, y).tobytes() == model.learn_many(X, y).tobytes()


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("bank.place", lambda a: np.where(a < 0, 0, a)),  # the deepest leaves split
        ("bank.place", lambda a: np.full_like(a, -1)),  # leaves have more than one record
        ("bank.place", lambda a: a[1:]),
        ("bank.place", lambda a: a.astype(np.float64)),
        ("bank.weight.touched", lambda a: a[::-1].copy()),
        ("bank.weight.touched", lambda a: a + 10**6),
        ("bank.weight.touched", lambda a: a.astype(np.float64)),
        ("bank.candidates.phases.touched", lambda a: a - 1),
        ("bank.candidates.phases.touched", lambda a: a + 1),
        ("bank.candidates.seen", lambda a: -a),
    ],
)
def test_forged_old_trees_are_refused(name, edit, tmp_path):
    path = tmp_path / "old.sb"
    old_file(path)
    changed(path, tensors=lambda arrays: arrays | {name: edit(arrays[name])})
    with pytest.raises(ModelFileError):
        load(path)
