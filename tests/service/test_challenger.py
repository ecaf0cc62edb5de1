"""A challenger learns the same rows as the model, is compared with it, and can replace it."""

import json
import shutil

import numpy as np
import pytest
from serving import OPTIONS, Server, serving, serving_app
from state_folders import build_entry, new_model, some_rows, trained_model

from spanboost.analysis.comparison import compare
from spanboost.cli.main import main
from spanboost.client import Client
from spanboost.models.files import to_bytes
from spanboost.models.model_spec import ModelSpec
from spanboost.service.http.app import build_app
from spanboost.service.learning.engine import Engine
from spanboost.service.learning.jobs import ShipmentJob
from spanboost.service.limits import StateLimits
from spanboost.service.storage.challenger import WHEN_BETTER, challenge_with, model_from_options
from spanboost.service.storage.control import CHALLENGE, PROMOTE, WITHDRAW, Control, ControlError
from spanboost.service.storage.journal import Journal
from spanboost.service.storage.journal_tail import ShippedRecord
from spanboost.service.storage.state import State

DATA = some_rows(1500)
WEAK = ModelSpec(learner="linear", n=1, rate=1e-6)
TOKENS = {"predict": "p" * 16, "learn": "l" * 16, "admin": "a" * 16}


def new_weak_model():
    return new_model(WEAK)


def learn(state, first, last, block=1000):
    entry = build_entry(first, last, DATA)
    state.commit(entry)
    for start in range(0, last - first, block):
        end = min(start + block, last - first)
        losses = state.learn(entry, start, end)
        state.learn_challenger(entry, start, end, losses)


def obey(state, control):
    state.commit_control(control)
    state.obey(control)


def challenge(state, rule="by-hand", **options):
    obey(state, challenge_with(state.model, model_from_options(state.model, options), rule))


def content(state):
    """Return everything that the journal determines, as comparable values."""
    one = state.challenger
    other = None if one is None else (to_bytes(one.model), one.state())
    return to_bytes(state.model), state.learned_record, state.progress.totals.tolist(), other


def test_a_challenger_is_compared_like_models_on_a_stream(tmp_path):
    state = State(tmp_path, new_model)
    learn(state, 0, 50)
    challenge(state, learner="stumps", n=4)
    learn(state, 50, 200)
    champion, challenger = new_model()[0], ModelSpec(learner="stumps", n=4).build()
    champion.learn_many(DATA[0][:50], DATA[1][:50])
    expected = compare(champion, challenger, DATA[0][50:200], DATA[1][50:200])
    assert state.challenger.comparison.state() == expected.state()
    assert to_bytes(state.model) == trained_model(DATA, 200)
    assert state.challenger.left_out == 0
    state.close()


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_challenger_survives_restarts_and_blocks_bit_for_bit(tmp_path, snapshot):
    whole = State(tmp_path / "whole", new_model)
    challenge(whole, n=2, learner="linear")
    for first in range(0, 120, 40):
        learn(whole, first, first + 40)
    folder = tmp_path / "cut"
    state = State(folder, new_model)
    challenge(state, n=2, learner="linear")
    for first in range(0, 120, 40):
        learn(state, first, first + 40, block=7)
        if snapshot:
            state.save()
        state.close()
        state = State(folder, new_model)
    assert content(state) == content(whole)
    obey(state, Control(PROMOTE, {}))
    assert to_bytes(state.model) == to_bytes(whole.challenger.model)
    state.close()
    whole.close()


@pytest.mark.parametrize("name", [PROMOTE, WITHDRAW, CHALLENGE])
def test_crashes_between_record_and_snapshot_leave_the_same_state(tmp_path, name):
    """The folder is copied after each step, as a kill leaves it, and then opened."""
    state = State(tmp_path / "state", new_model)
    if name != CHALLENGE:
        challenge(state, learner="linear", n=2)
    learn(state, 0, 60)
    state.save()
    control = Control(name, {})
    if name == CHALLENGE:
        control = challenge_with(
            state.model, model_from_options(state.model, {"n": 2, "learner": "linear"}), "by-hand"
        )
    copies = [("before", content(state))]
    shutil.copytree(state.folder, tmp_path / "before")
    state.commit_control(control)
    shutil.copytree(state.folder, tmp_path / "record")
    state.obey(control)
    shutil.copytree(state.folder, tmp_path / "obeyed")
    state.save()
    shutil.copytree(state.folder, tmp_path / "snapshot")
    copies += [(step, content(state)) for step in ("record", "obeyed", "snapshot")]
    state.close()
    for step, expected in copies:
        opened = State(tmp_path / step, new_model)
        assert content(opened) == expected
        opened.close()


def test_a_rollback_begins_the_comparison_again(tmp_path):
    state = State(tmp_path, new_model)
    challenge(state, learner="linear", n=2)
    learn(state, 0, 60)
    assert state.challenger.comparison.rows == 60
    obey(state, Control("rollback", {"version": 0}, trained_model(DATA, 10)))
    assert state.challenger.comparison.rows == 0
    state.close()


def test_a_row_that_one_model_rejects_is_not_compared(tmp_path):
    state = State(tmp_path, new_model)
    challenge(state, learner="linear", n=2)
    refused = state.challenger.model.learn_many

    def learn_many(X, y, weights=None):
        from spanboost.errors import DataError

        for t, row in enumerate(X):
            if row["size"] > 0.9:
                raise DataError(t, "too large")
        return refused(X, y, weights)

    state.challenger.model.learn_many = learn_many
    learn(state, 0, 100)
    large = sum(row["size"] > 0.9 for row in DATA[0][:100])
    assert 0 < large == state.challenger.left_out
    assert state.challenger.comparison.rows == 100 - large
    assert np.isfinite(state.challenger.comparison.losses).all()
    state.close()


def test_controls_that_make_no_sense_now_change_nothing(tmp_path):
    state = State(tmp_path, new_model)
    for name in (PROMOTE, WITHDRAW):
        with pytest.raises(ControlError, match="there is no challenger"):
            state.commit_control(Control(name, {}))
    challenge(state, n=2)
    with pytest.raises(ControlError, match="there is a challenger already"):
        challenge(state, n=2)
    assert state.journal.last == 1
    state.close()


# the service


@pytest.fixture
def serve(tmp_path):
    """Serve a folder whose model is weak; a restart uses the same folder."""

    def serve(new=new_weak_model, tokens=None):
        state = State(tmp_path / "state", new, StateLimits(snapshot_rows=50))
        return serving_app(build_app(Engine(state), tokens))

    return serve


def send(client, first, last):
    rows = [row | {"label": y} for row, y in zip(*DATA, strict=True)][first:last]
    assert client.post("/learn", params={"wait": "true"}, json=rows).status_code == 200
    client.get("/model")  # the writer answers it after what follows the rows


def test_a_better_challenger_is_promoted_by_rule(serve):
    with serve() as client:
        assert client.get("/challenger").json() == {"challenger": None}
        options = {"learner": "linear", "n": 4}
        response = client.post("/challenger", params={"promote": WHEN_BETTER}, json=options)
        assert (response.status_code, response.json()) == (200, {"record": 1})
        send(client, 0, 20)
        found = client.get("/challenger").json()["challenger"]
        assert (found["rows"], found["better"], found["promote"]) == (20, None, WHEN_BETTER)
        gain = found["champion_loss"] - found["challenger_loss"]
        assert found["difference"] == pytest.approx(gain)
        low, high = found["interval"]
        assert low < found["difference"] < high
        metrics = client.get("/metrics").text
        assert "spanboost_challenger_rows 20" in metrics
        assert 'spanboost_compared_loss{role="challenger"}' in metrics
        assert f'spanboost_challenger_gain{{end="low"}} {low!r}' in metrics
    with serve() as client:  # a restart continues the comparison
        assert client.get("/challenger").json()["challenger"] == found
        for first in range(20, 1500, 20):
            send(client, first, first + 20)
        assert client.get("/challenger").json() == {"challenger": None}
        assert client.get("/model").content == trained_model(DATA, 1500)


def test_an_equal_challenger_is_not_promoted(serve):
    with serve(new_model) as client:
        options = {"learner": "linear", "n": 4}
        client.post("/challenger", params={"promote": WHEN_BETTER}, json=options)
        for first in range(0, 300, 50):
            send(client, first, first + 50)
        found = client.get("/challenger").json()["challenger"]
        assert (found["rows"], found["difference"], found["better"]) == (300, 0, None)


def test_a_model_file_challenges_and_is_promoted_by_hand(serve):
    with serve() as client:
        headers = {"Content-Type": "application/octet-stream"}
        model = trained_model(DATA, 100)
        assert client.post("/challenger", content=model, headers=headers).status_code == 200
        assert client.post("/challenger", content=model, headers=headers).status_code == 409
        assert client.post("/challenger/promote").json() == {"record": 2}
        assert client.get("/model").content == model
        assert client.post("/challenger/promote").status_code == 409
        assert client.delete("/challenger").status_code == 409
        client.post("/challenger", json={"learner": "linear", "n": 2})
        assert client.delete("/challenger").status_code == 200
        assert client.get("/challenger").json() == {"challenger": None}
        assert client.get("/model").content == model


BAD = {
    "not JSON": (b"{", "application/json", 422, "not valid JSON"),
    "a list": (b"[]", "application/json", 422, "must be a JSON object"),
    "unknown option": (b'{"size": 1}', "application/json", 422, "unknown option 'size'"),
    "unknown learner": (b'{"learner": "x"}', "application/json", 422, "unknown learner"),
    "bad learner": (b'{"learner": {}}', "application/json", 422, "unknown learner"),
    "bad value": (b'{"n": -1}', "application/json", 422, "n must be a positive integer"),
    "another loss": (b'{"loss": "logistic"}', "application/json", 422, "another loss"),
    "ball": (b'{"learner": "ball", "x_norm": 1}', "application/json", 422, "ball"),
    "no model": (b"abc", "application/octet-stream", 422, "not a model file"),
    "no body": (b"", "application/octet-stream", 422, "not a model file"),
    "a form": (b"n=1", "text/plain", 415, "unsupported content type"),
}


def test_bad_challengers_are_refused_in_one_sentence(serve):
    with serve() as client:
        before = client.get("/metrics").text.count("\n")
        for body, kind, status, why in BAD.values():
            headers = {"Content-Type": kind}
            response = client.post("/challenger", content=body, headers=headers)
            assert (response.status_code, why in response.json()["error"]) == (status, True), why
        for label in ("label", "price"):
            model, _ = new_model()
            model.schema.label = label
            headers = {"Content-Type": "application/octet-stream"}
            response = client.post("/challenger", content=to_bytes(model), headers=headers)
            assert response.status_code == (200 if label == "label" else 422)
            client.delete("/challenger")
        assert "its label is 'price'; expected 'label'" in response.json()["error"]
        response = client.post("/challenger", params={"promote": "always"}, json={})
        assert response.status_code == 400
        assert client.get("/challenger").json() == {"challenger": None}
        assert client.get("/metrics").text.count("\n") >= before


def test_a_challenger_with_nans_is_withdrawn_so_that_snapshots_go_on(tmp_path):
    state = State(tmp_path, new_model, StateLimits(snapshot_rows=10))
    engine = Engine(state)
    with serving_app(build_app(engine)) as client:
        client.post("/challenger", json={"learner": "linear", "n": 2})
        send(client, 0, 20)
        for array in dict(state.challenger.model.tensors()).values():
            if array.dtype == np.float64:
                array[...] = np.nan
        send(client, 20, 40)
        assert client.get("/challenger").json() == {"challenger": None}
        assert state.snapshot_record == state.learned_record
    assert to_bytes(state.model) == trained_model(DATA, 40)


def test_the_challenger_needs_the_admin_token(serve):
    with serve(tokens=TOKENS) as client:
        for scope, status in [("learn", 401), ("predict", 401), ("admin", 200)]:
            headers = {"Authorization": f"Bearer {TOKENS[scope]}"}
            body = json.dumps({"learner": "linear", "n": 2})
            own = headers | {"Content-Type": "application/json"}
            assert client.get("/challenger", headers=headers).status_code == status
            assert client.post("/challenger", content=body, headers=own).status_code == status
            assert client.post("/challenger/promote", headers=headers).status_code == status
            if status == 401:
                assert client.delete("/challenger", headers=headers).status_code == status


def test_the_command_works_on_folders_and_services(serve, tmp_path, capsys):
    State(tmp_path / "offline", new_weak_model).close()
    (tmp_path / "model.sb").write_bytes(trained_model(DATA, 100))

    def run(*words):
        status = main(["challenge", *words])
        return status, "".join(capsys.readouterr())

    with serve() as client:
        for target in (str(tmp_path / "offline"), str(client.base_url)):
            assert "There is no challenger." in run(target)[1]
            assert run(target, "promote") == (2, "spanboost: there is no challenger\n")
            assert run(target, "begin", "--learner", "linear", "-n", "2")[0] == 0
            assert "rows compared: 0\nIt is not certain" in run(target)[1]
            assert run(target, "withdraw")[0] == 0
            model = str(tmp_path / "model.sb")
            assert run(target, "begin", "-m", model, "--promote", "when-better")[0] == 0
            assert run(target, "promote")[0] == 0
            assert run(target, "show", "-n", "2")[0] == 2
            assert run(target, "begin", "-n", "2", "-m", model)[0] == 2
        send(client, 100, 150)
        assert run(target, "begin", "--learner", "linear", "-n", "2")[0] == 0
        send(client, 150, 200)
        assert "loss of the challenger: " in run(target)[1]
        assert client.get("/model").content == trained_model(DATA, 200)
    state = State(tmp_path / "offline", new_weak_model)
    assert to_bytes(state.model) == trained_model(DATA, 100)
    state.close()


def test_a_follower_obeys_the_journal_and_does_not_decide(tmp_path):
    leader = State(tmp_path / "leader", new_weak_model)
    challenge(leader, WHEN_BETTER, learner="linear", n=4)
    for first in range(0, 1500, 100):
        learn(leader, first, first + 100)
    assert leader.challenger.better
    engine = Engine(State(tmp_path / "follower", new_weak_model))

    def ship(after):
        journal = Journal(leader.journal.folder)
        records = [
            ShippedRecord(one.number, bytes(one.payload), one.time, journal.mark)
            for one in list(journal.read())[after:]
        ]
        journal.close()
        job = ShipmentJob(records)
        engine.writer.submit(job)
        job.result(60)
        return content(engine.state)

    assert ship(0) == content(leader)
    last = leader.learned_record
    obey(leader, Control(PROMOTE, {}))
    assert ship(last) == content(leader)
    engine.close()
    leader.close()


def test_a_restored_folder_has_the_challenger(tmp_path):
    state = State(tmp_path / "state", new_model)
    challenge(state, learner="linear", n=2)
    learn(state, 0, 40)
    state.save()
    learn(state, 40, 60)
    expected = content(state)
    state.close()
    words = ["restore", str(tmp_path / "state"), "--to", "3", "--dir", str(tmp_path / "new")]
    assert main(words) == 0
    opened = State(tmp_path / "new", new_model)
    assert content(opened) == expected
    opened.close()


@pytest.mark.process
def test_a_challenger_survives_a_kill(tmp_path):
    server = Server(tmp_path, *OPTIONS)
    with Client(server.address) as client:
        options = {"learner": "linear", "n": 2}
        client.administer("POST", "/challenger", options, {"promote": WHEN_BETTER})
        rows = [row | {"label": y} for row, y in zip(*DATA, strict=True)]
        client.learn(rows[:200], wait=True)
        before, model = client.administer("GET", "/challenger"), client.model()
    server.kill()
    with serving(tmp_path) as server, Client(server.address) as client:
        assert client.administer("GET", "/challenger") == before
        assert before["challenger"]["rows"] == 200
        assert client.model() == model
