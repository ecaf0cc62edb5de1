"""Workers that are killed at random moments, under load, with late labels.

They must end with the same model, bit for bit, as a worker that was never disturbed.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time

import pytest
from serving import OPTIONS, Server

from spanboost.models.files import load, to_bytes
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.journal import Journal

pytestmark = [pytest.mark.process, pytest.mark.slow]
KILLS = int(os.environ.get("SPANBOOST_KILLS", "2"))
PER_SECOND = 100  # rows; the mock cluster keeps at most 5 MB of a partition


class Sender(threading.Thread):
    """Writes rows until it is stopped, and the labels of most of them later.

    labels: the stream of labels; the same as that of rows, if they are mixed. Then there are also
    rows with labels and messages that cannot be used.
    """

    def __init__(self, broker, rows, labels):
        super().__init__(daemon=True)
        self.broker, self.rows, self.labels = broker, rows, labels
        self.mixed = rows == labels
        self.rng, self.stop = random.Random(7), threading.Event()
        self.predicted, self.learned, self.bad = [], [], []  # in the order of the messages
        self.waiting = []  # rows whose labels come later
        self.number = 0
        self.error = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.write(self.rng.choice([1, 3, 20]))
                time.sleep(8 / PER_SECOND)
            while self.waiting:
                self.write(0)
        except Exception as error:
            self.error = error

    def write(self, count):
        """Write some rows, and labels of some earlier ones."""
        rows = [self.draw() for _ in range(count)]
        self.broker.send(self.rows, rows)
        self.rng.shuffle(self.waiting)
        late = [self.waiting.pop() for _ in range(min(len(self.waiting), self.rng.randint(0, 12)))]
        self.broker.send(self.labels, [{"id": id, "label": label} for id, label in late])
        self.learned += [id for id, _ in late]

    def draw(self):
        self.number += 1
        id, kind = f"row {self.number}", self.rng.random()
        row = {"id": id, "size": self.rng.random(), "city": self.rng.choice("abcdef")}
        label = 3 * row["size"] + (row["city"] == "a")
        if self.mixed and kind < 0.3:
            self.learned.append(id)
            return row | {"label": label}
        if self.mixed and kind < 0.35:
            self.bad.append(id)
            return row | {"size": [id]}
        self.predicted.append(id)
        if kind < 0.9:
            self.waiting.append((id, label))
        return row


def words(broker, mixed, name, drain=False):
    """Return the options of a worker that reads the streams of `name`."""
    options = {"partitions": 0} if broker.name == "kafka" and mixed else {}
    found = [*OPTIONS, "--snapshot-every", "300", "--from", broker.url(f"{name}-rows", **options)]
    if not mixed:
        found += ["--labels", broker.url(f"{name}-labels", **options)]
    found += ["--to", broker.url(f"{name}-predictions")]
    found += ["--dead-letters", broker.url(f"{name}-bad")]
    return [*found, *(["--drain"] if drain else [])]


def drain(broker, mixed, name, folder, *more):
    """Run a worker until it has processed everything."""
    command = [sys.executable, "-m", "spanboost", "work", "--dir", folder, "--port", "0"]
    done = subprocess.run(
        [*command, *words(broker, mixed, name, drain=True), *more],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def read_folder(folder):
    """Return the ids of the rows in the order of the journal, and the bytes of the last model."""
    ids = []
    for record in Journal(folder / "journal").read():
        ids += decode_entry(record.payload).ids
    newest = max((folder / "snapshots").glob("*.sb"))
    return ids, to_bytes(load(newest))


@pytest.mark.parametrize("mixed", [False, True], ids=["two streams", "one stream"])
def test_kills_lose_nothing_and_learn_nothing_twice(broker, mixed, tmp_path):
    name = f"killed-{mixed}"
    streams = [f"{name}-{part}" for part in ("rows", "labels", "predictions", "bad")]
    broker.create(*streams)
    sender = Sender(broker, streams[0], streams[0 if mixed else 1])
    sender.start()
    folder, rng = tmp_path / "killed", random.Random(11)
    longest = 6.0 if broker.name == "kafka" and not mixed else 2.0  # a group takes time to begin
    for _ in range(KILLS):
        worker = Server(folder, *words(broker, mixed, name), command="work")
        time.sleep(rng.uniform(0.0, longest))
        worker.kill()
        assert "Traceback" not in "".join(worker.log)
    sender.stop.set()
    sender.join(60)
    assert sender.error is None
    drain(broker, mixed, name, folder)
    ids, model = read_folder(folder)
    assert ids == sender.learned  # nothing lost, nothing twice, in the order of the messages
    drain(broker, mixed, name, tmp_path / "undisturbed", "--group", "undisturbed")
    assert read_folder(tmp_path / "undisturbed") == (ids, model)
    predicted = [json.loads(payload)["id"] for payload, _ in broker.read(streams[2])]
    assert set(predicted) == set(sender.predicted)  # at least once, each with its id
    bad = [json.loads(payload)["id"] for payload, _ in broker.read(streams[3])]
    assert set(bad) == set(sender.bad)
    assert len(ids) > 20
