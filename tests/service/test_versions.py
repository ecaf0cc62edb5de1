"""Versions are listed, pinned and rolled back, online and offline, and survive restarts."""

import pytest
from serving import serving_app
from state_folders import commit_and_learn, new_model, some_rows, trained_model

from spanboost.cli.main import main
from spanboost.models.files import to_bytes
from spanboost.service.http.app import build_app
from spanboost.service.learning.engine import Engine
from spanboost.service.limits import StateLimits
from spanboost.service.storage.state import State
from spanboost.service.storage.versions import (
    UnknownVersionError,
    list_versions,
    pin_version,
    roll_back_to,
    unpin_version,
)

DATA = some_rows(100)


def learn_and_save(state, *ends):
    first = 0
    for last in ends:
        commit_and_learn(state, first, last, DATA)
        state.save()
        first = last


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def model_bytes(folder):
    state = State(folder, new_model)
    data = to_bytes(state.model)
    state.close()
    return data


def test_versions_tell_the_loss_of_their_rows(tmp_path):
    state = State(tmp_path, new_model)
    learn_and_save(state, 30, 70)
    state.close()
    model, _ = new_model()
    losses = (model.learn_many(DATA[0][:70], DATA[1][:70]) - DATA[1][:70]) ** 2
    second, third = list_versions(state.snapshots)
    assert [second.version, second.rows, third.version, third.rows] == [1, 30, 2, 70]
    assert second.loss == pytest.approx(losses[:30].mean())
    assert second.recent_loss == pytest.approx(losses[:30].mean())
    assert third.loss == pytest.approx(losses.mean())
    assert third.recent_loss == pytest.approx(losses[30:].mean())
    assert not third.pinned


def test_a_pinned_version_is_kept_until_it_is_unpinned(tmp_path):
    state = State(tmp_path, new_model)
    pin_version(state.snapshots, 0)
    learn_and_save(state, 10, 20, 30, 40)
    assert [one.version for one in list_versions(state.snapshots)] == [0, 3, 4]
    assert list_versions(state.snapshots)[0].pinned
    unpin_version(state.snapshots, 0)
    commit_and_learn(state, 40, 50, DATA)
    state.save()
    assert [one.version for one in list_versions(state.snapshots)] == [4, 5]
    state.close()


def test_a_pinned_version_older_than_the_journal_cannot_be_restored(tmp_path, capsys):
    state = State(tmp_path / "state", new_model, StateLimits(remembered_ids=1))
    pin_version(state.snapshots, 0)
    learn_and_save(state, 10, 20, 30, 40)
    state.close()
    command = ["restore", str(tmp_path / "state"), "--dir", str(tmp_path / "new"), "--to"]
    for record in (0, 1, 2):
        assert main([*command, str(record)]) == 2
        assert f"record {record} cannot be restored; 3 to 4 can" in capsys.readouterr().err
    assert main([*command, "3"]) == 0
    assert model_bytes(tmp_path / "new") == trained_model(DATA, 30)


@pytest.mark.parametrize("change", [pin_version, unpin_version, roll_back_to])
def test_an_unknown_version_changes_nothing(tmp_path, change):
    State(tmp_path, new_model).close()
    before = content(tmp_path)
    with pytest.raises(UnknownVersionError, match="there is no version 7"):
        change(tmp_path / "snapshots", 7)
    assert content(tmp_path) == before


@pytest.mark.parametrize("steps", range(4))
def test_a_rollback_that_is_cut_off_happens_as_a_whole_or_not_at_all(tmp_path, steps):
    """The folder is copied after each step, as a kill leaves it."""
    state = State(tmp_path, new_model)
    learn_and_save(state, 20, 50)
    control = roll_back_to(state.snapshots, 1)
    for step in [
        lambda: state.commit_control(control),
        lambda: state.obey(control),
        state.save,
    ][:steps]:
        step()
    state.close()
    assert model_bytes(tmp_path) == trained_model(DATA, 20 if steps else 50)
    if steps == 3:  # also without the snapshot that the rollback wrote, and without its version
        (tmp_path / "snapshots" / f"{3:020}.sb").write_bytes(b"damaged")
        (tmp_path / "snapshots" / f"{1:020}.sb").unlink(missing_ok=True)
        assert model_bytes(tmp_path) == trained_model(DATA, 20)


@pytest.fixture
def client(tmp_path):
    state = State(tmp_path / "state", new_model, StateLimits(snapshot_rows=1))
    with serving_app(build_app(Engine(state))) as client:
        yield client


def learn(client, first, last):
    rows = [row | {"label": y} for row, y in zip(*DATA, strict=True)][first:last]
    assert client.post("/learn", params={"wait": "true"}, json=rows).status_code == 200
    client.get("/model")  # the writer answers it after the snapshot


def test_a_running_service_rolls_back(client, tmp_path):
    learn(client, 0, 20)
    learn(client, 20, 50)
    found = client.get("/versions").json()["versions"]
    assert [(one["version"], one["rows"], one["pinned"]) for one in found] == [
        (1, 20, False),
        (2, 50, False),
    ]
    assert client.post("/versions/1/pin").json()["versions"][0]["pinned"]
    response = client.post("/versions/1/rollback")
    assert (response.status_code, response.json()) == (200, {"version": 1, "record": 3})
    assert client.get("/model").content == trained_model(DATA, 20)
    learn(client, 20, 30)
    assert client.get("/model").content == trained_model(DATA, 30)
    found = client.get("/versions").json()["versions"]
    assert [one["version"] for one in found] == [1, 3, 4]
    assert not client.post("/versions/1/unpin").json()["versions"][0]["pinned"]


@pytest.mark.parametrize("number", ["7", "-1", "x", "1e3", "9" * 40, "%00"])
@pytest.mark.parametrize("action", ["pin", "unpin", "rollback"])
def test_numbers_without_a_version_are_refused(client, number, action):
    response = client.post(f"/versions/{number}/{action}")
    assert response.status_code == 404
    assert "version" in response.json()["error"]
    assert client.get(f"/versions/0/{action}").status_code == 405


def test_versions_need_the_admin_token(tmp_path):
    tokens = {"predict": "p" * 16, "learn": "l" * 16, "admin": "a" * 16}
    state = State(tmp_path / "state", new_model)
    with serving_app(build_app(Engine(state), tokens)) as client:
        for token, status in [("l", 401), ("a", 200)]:
            headers = {"Authorization": f"Bearer {token * 16}"}
            assert client.get("/versions", headers=headers).status_code == status
            post = client.post("/versions/0/rollback", headers=headers)
            assert post.status_code == status


def test_the_command_deletes_no_versions(tmp_path):
    state = State(tmp_path, new_model, StateLimits(keep_rows=1000))
    learn_and_save(state, 20, 40, 60)
    state.close()
    assert main(["versions", str(tmp_path), "rollback", "1"]) == 0
    assert [one.version for one in list_versions(state.snapshots)] == [0, 1, 2, 3, 4]


def test_the_command_works_on_folders_and_services(client, tmp_path, capsys):
    folder, address = tmp_path / "offline", str(client.base_url)
    state = State(folder, new_model)
    learn_and_save(state, 20, 50)
    state.close()
    learn(client, 0, 20)
    for target in (str(folder), address):
        assert main(["versions", target, "pin", "1"]) == 0
        assert "pinned" in capsys.readouterr().out
        assert main(["versions", target, "rollback", "1"]) == 0
        assert "Rolled back to version 1, in record" in capsys.readouterr().out
        assert main(["versions", target, "unpin", "1"]) == 0
        assert "pinned" not in capsys.readouterr().out
        assert main(["versions", target, "rollback", "99"]) == 2
        assert "there is no version 99" in capsys.readouterr().err
        assert main(["versions", target, "pin"]) == 2
        assert "need the number of a version" in capsys.readouterr().err
    assert model_bytes(folder) == trained_model(DATA, 20)
    assert main(["versions", str(tmp_path)]) == 2
    assert "is not a state folder" in capsys.readouterr().err
