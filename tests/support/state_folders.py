"""State folders for tests: a small model, rows with labels, and entries of the journal."""

import random

from spanboost.models.files import to_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service.storage.entry import Entry
from spanboost.service.storage.state import State

SPEC = ModelSpec(learner="linear", n=4)


def new_model(spec=SPEC, target=None):
    """Return the model of a new folder and its identity, as `State` expects them."""
    from spanboost.data.schema import Schema
    from spanboost.data.target import NumberTarget

    model = spec.build()
    model.schema = Schema("json", target or NumberTarget(None))
    return model, {"recipe": spec.identity()}


def some_rows(n, seed=0):
    """Return rows and their labels."""
    rng = random.Random(seed)
    rows = [{"size": rng.random(), "city": rng.choice("abc")} for _ in range(n)]
    return rows, [3 * row["size"] + (row["city"] == "a") for row in rows]


def build_entry(first, last, data):
    """Return some of the rows as an entry of the journal."""
    rows, labels = data
    ids = [f"row {k}" for k in range(first, last)]
    return Entry(ids, rows[first:last], labels[first:last], None)


def trained_model(data, n):
    """Return the bytes of a model that has learned the first n rows."""
    model, _ = new_model()
    model.learn_many(data[0][:n], data[1][:n])
    return to_bytes(model)


def commit_and_learn(state, first, last, data):
    """Let an open folder learn some of the rows."""
    one = build_entry(first, last, data)
    state.commit(one)
    state.learn(one, 0, len(one.rows))


def add_pending(pending, rows, record=None):
    """Store rows, given by id, until their labels arrive."""
    pending.add([*rows], [*rows.values()], record)


def write_folder(folder, steps, data, rows=25):
    """Learn blocks of rows; a step is the number of blocks before a snapshot."""
    state, n = State(folder, new_model), 0
    for k, blocks in enumerate(steps):
        if k:
            state.save()
        for _ in range(blocks):
            commit_and_learn(state, n, n + rows, data)
            n += rows
    state.close()
    return n


def journal_files(folder):
    """Return the paths of the journal files of a state folder, in order."""
    return sorted((folder / "journal").glob("*.log"))
