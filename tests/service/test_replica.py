"""The model of a worker process: equal to the leader's, and never older than it may be."""

import time

import pytest
from serving import wait_until
from state_folders import commit_and_learn, new_model, some_rows

from spanboost.models.files import to_bytes
from spanboost.service.http.forwarding import CLIENT_HEADER, restore_client
from spanboost.service.http.token_guard import ProvedAddresses
from spanboost.service.learning.jobs import PredictJob
from spanboost.service.learning.replica import Replica
from spanboost.service.limits import RequestLimits, StateLimits
from spanboost.service.storage.challenger import BY_HAND, challenge_with
from spanboost.service.storage.control import PROMOTE, Control
from spanboost.service.storage.replica import ReplicaState
from spanboost.service.storage.state import State
from spanboost.service.storage.versions import roll_back_to

DATA = some_rows(300)
SECRET = "s" * 64


@pytest.fixture
def leader(tmp_path):
    state = State(tmp_path, new_model, StateLimits(snapshot_rows=50))
    yield state
    state.close()


@pytest.fixture
def replica(leader):
    failures = []
    one = Replica(ReplicaState(leader.folder), RequestLimits(), failures.append)
    one.failures = failures
    yield one
    one.close()


def control(state, what):
    state.commit_control(what)
    state.obey(what)


def catch_up(replica, leader):
    wait_until(lambda: replica.state.learned_record == leader.learned_record or replica.failures)
    assert replica.failures == []
    assert to_bytes(replica.state.model) == to_bytes(leader.model)


def test_the_model_is_the_leaders_after_rows_snapshots_and_controls(leader, replica):
    for first in range(0, 200, 10):
        commit_and_learn(leader, first, first + 10, DATA)
        if leader.snapshot_due:
            leader.save()
    catch_up(replica, leader)
    control(leader, roll_back_to(leader.snapshots, leader.snapshot_record))
    catch_up(replica, leader)
    other, _ = new_model()
    other.learn_many(DATA[0][:20], DATA[1][:20])
    control(leader, challenge_with(leader.model, other, BY_HAND))
    control(leader, Control(PROMOTE, {}))
    catch_up(replica, leader)
    assert to_bytes(replica.state.model) == to_bytes(other)


def test_a_new_replica_continues_after_the_last_snapshot(leader):
    commit_and_learn(leader, 0, 60, DATA)
    leader.save()
    commit_and_learn(leader, 60, 90, DATA)
    state = ReplicaState(leader.folder)
    assert state.learned_record == leader.snapshot_record == 1
    assert [record.number for record in state.read().records] == [2]


def test_a_replica_reads_only(leader):
    commit_and_learn(leader, 0, 60, DATA)

    def files():
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_size)
            for path in leader.folder.rglob("*")
        }

    before = files()
    one = Replica(ReplicaState(leader.folder), RequestLimits())
    wait_until(lambda: one.fresh)
    job = PredictJob(DATA[0][:3], [None] * 3, keep=False)
    one.predictor.submit(job)
    assert job.result(60).columns["prediction"] == leader.model.predict_many(DATA[0][:3]).tolist()
    one.close()
    assert files() == before


def test_a_replica_that_cannot_read_the_journal_is_not_fresh(leader, replica, monkeypatch):
    wait_until(lambda: replica.fresh)

    def fail():
        raise OSError("unreadable")

    monkeypatch.setattr(replica.state, "read", fail)
    wait_until(lambda: not replica.fresh)
    commit_and_learn(leader, 0, 10, DATA)
    monkeypatch.undo()
    wait_until(lambda: replica.fresh)
    catch_up(replica, leader)


def test_a_replica_fails_if_the_journal_loses_its_last_record(leader, replica):
    size = leader.journal.size
    (path,) = (leader.folder / "journal").glob("*.log")
    commit_and_learn(leader, 0, 10, DATA)
    catch_up(replica, leader)
    with path.open("r+b") as file:
        file.truncate(size)
    wait_until(lambda: replica.failures)
    assert "the journal ends before record 1" in replica.failures[0]
    end = time.monotonic()
    wait_until(lambda: not replica.fresh or time.monotonic() > end + 30)
    assert not replica.fresh


def request(*headers):
    return {"client": ("10.0.0.1", 5), "headers": [(b"host", b"localhost"), *headers]}


def test_only_the_secret_lets_a_worker_state_the_client():
    stated = (CLIENT_HEADER, SECRET.encode() + b" ::1 4711")
    found = restore_client(request(stated), SECRET)
    assert found == {"client": ("::1", 4711), "headers": [(b"host", b"localhost")]}
    unknown = (CLIENT_HEADER, SECRET.encode() + b"  0")
    assert restore_client(request(unknown), SECRET)["client"] is None
    for wrong in (
        request(),
        request((CLIENT_HEADER, b"")),
        request((CLIENT_HEADER, b"guess ::1 4711")),
        request(stated, stated),
    ):
        assert restore_client(wrong, SECRET)["client"] == ("10.0.0.1", 5)


def test_an_address_is_permitted_after_its_token_was_accepted():
    proved, right, wrong = ProvedAddresses("t" * 16), b"Bearer " + b"t" * 16, b"Bearer x"
    assert not proved.permit("10.0.0.1", right)
    proved.add("10.0.0.1", wrong)
    assert not proved.permit("10.0.0.1", right)
    proved.add("10.0.0.1", right)
    assert proved.permit("10.0.0.1", right)
    assert not proved.permit("10.0.0.1", wrong)
    assert not proved.permit("10.0.0.2", right)
    assert ProvedAddresses(None).permit("10.0.0.2", b"")
