"""Followers in processes of their own: killed, restarted, and promoted by hand."""

import random
import threading

import httpx
import pytest
from serving import OPTIONS, Server, serving, wait_until

from spanboost.client import Client, ServiceError

pytestmark = pytest.mark.process
SMALL_SNAPSHOTS = ("--snapshot-every", "200")


class Sender(threading.Thread):
    """Sends rows to the leader, and notes the ids of those that it has acknowledged."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.stop, self.acknowledged = address, threading.Event(), []

    def run(self):
        rng = random.Random(0)
        with Client(self.address, retries=0) as client:
            for k in range(10**6):
                rows = [
                    {"id": f"{k}.{j}", "x": rng.random(), "label": rng.random()} for j in range(20)
                ]
                try:
                    client.learn(rows)
                except ServiceError:  # the leader was killed
                    return
                self.acknowledged.append(rows)
                if self.stop.wait(0.005):
                    return


def record(address):
    with Client(address) as client:
        return client.metrics()["spanboost_journal_record"]


def lag(address):
    with Client(address) as client:
        return client.metrics()["spanboost_follower_lag_records"]


@pytest.mark.parametrize("kind", ["url", "folder"])
def test_a_killed_follower_catches_up_and_can_replace_its_leader(tmp_path, kind):
    leader = Server(tmp_path / "leader", *OPTIONS, *SMALL_SNAPSHOTS)
    sender = Sender(leader.address)
    sender.start()
    name = leader.address if kind == "url" else str(tmp_path / "leader")
    options = ("--follow", name, *SMALL_SNAPSHOTS)
    for kill in range(3):
        follower = Server(tmp_path / "copy", *options)
        before = record(leader.address)
        wait_until(lambda before=before, f=follower: record(f.address) > before + 20, 60)
        if kill < 2:
            follower.kill()
    sender.stop.set()
    sender.join(60)
    with Client(leader.address) as one, Client(follower.address) as other:
        # the last labels may not be learned yet
        learned = 20 * len(sender.acknowledged)
        wait_until(lambda: one.metrics()["spanboost_learned_rows_total"] == learned, 60)
        wait_until(lambda: record(follower.address) == record(leader.address), 60)
        assert lag(follower.address) == 0
        assert one.model() == other.model()
        model = other.model()
        with pytest.raises(ServiceError, match="this server is a follower and changes"):
            other.learn([{"x": 1, "label": 1}])
    leader.kill()
    assert httpx.get(f"{follower.address}/readyz", trust_env=False).status_code == 200
    follower.kill()
    with serving(tmp_path / "copy", *SMALL_SNAPSHOTS) as server, Client(server.address) as client:
        assert client.model() == model
        for rows in sender.acknowledged[-20:]:
            assert client.learn(rows).duplicates == len(rows)
        assert client.learn([{"x": 1, "label": 1}]).learned == 1


def test_a_follower_ends_when_its_leader_is_another_one(tmp_path):
    with serving(tmp_path / "leader") as leader, Client(leader.address) as client:
        client.learn([{"x": 1, "label": 1}], wait=True)
        port = leader.port
        with serving(tmp_path / "copy", "--follow", leader.address) as follower:
            wait_until(lambda: record(follower.address) == 1, 60)
    follower = Server(tmp_path / "copy", "--follow", f"http://127.0.0.1:{port}")
    other = Server(tmp_path / "other", *OPTIONS, port=port)
    assert follower.process.wait(60) == 1
    follower.wait()
    assert f"delete {tmp_path / 'copy'} and start again" in "".join(follower.log)
    assert other.stop() == 0
