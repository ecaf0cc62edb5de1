"""Leaders and followers for tests: servers in this process, each with its folder."""

from contextlib import contextmanager
from pathlib import Path

from serving import serving_app, wait_until
from state_folders import some_rows

from spanboost.cli.commands.serve import open_state
from spanboost.cli.following import copy_leader
from spanboost.cli.parser import parser
from spanboost.service.http.app import build_app
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.follower import Follower
from spanboost.service.limits import StateLimits
from spanboost.service.storage.leader_copy import LeaderCopy

SMALL = ["--learner", "linear", "-n", "4"]
FEW = StateLimits(snapshot_rows=60)


@contextmanager
def leading(folder, tokens=None, limits=FEW, options=()):
    """Serve a folder as a leader."""
    words = ["serve", "--dir", str(folder), *SMALL, *options]
    engine = Engine(open_state(parser().parse_args(words), limits))
    with serving_app(build_app(engine, tokens)) as client:
        client.engine = engine
        yield client


@contextmanager
def following(leader, folder, limits=FEW):
    """Serve a folder as a follower; `failures` has the reasons for which it would end."""
    args = parser().parse_args(["serve", "--dir", str(folder), "--follow", str(leader)])
    source, failures = copy_leader(args, lambda: None), []
    engine = Engine(open_state(args, limits))
    app = build_app(None)
    follower = Follower(engine, source, LeaderCopy(Path(folder)), failures.append)
    app.begin(engine, follower)
    with serving_app(app) as client:
        client.engine, client.follower, client.failures = engine, follower, failures
        yield client


ROWS = [
    {"id": f"row {k}", **row, "label": label}
    for k, (row, label) in enumerate(zip(*some_rows(400), strict=True))
]


def learn(client, first, last, size=10):
    """Let a leader learn some of the rows."""
    for k in range(first, last, size):
        response = client.post("/learn?wait=true", json=ROWS[k : min(k + size, last)])
        assert response.status_code == 200, response.text


def catch_up(follower, leader):
    """Wait until a follower has learned all records of its leader."""
    last = leader.engine.state.learned_record
    wait_until(lambda: follower.engine.state.learned_record == last or follower.failures)
    assert follower.failures == []


def failure(leader, copy):
    """Return why a follower ends."""
    with following(leader, copy) as follower:
        wait_until(lambda: follower.failures)
        return follower.failures[0]
