"""Followers: the same model as the leader at the same record, and refusals of everything else."""

import pytest
from leaders import ROWS, SMALL, catch_up, failure, following, leading, learn
from serving import wait_until

from spanboost.cli import following as following_module
from spanboost.cli.following import check_follow_options, copy_leader
from spanboost.cli.parser import parser
from spanboost.client import _parse_metrics
from spanboost.errors import UsageError
from spanboost.service.learning import follower as follower_module
from spanboost.service.limits import StateLimits
from spanboost.service.storage.control import ROLLBACK, Control
from spanboost.service.storage.entry import decode_entry
from spanboost.service.storage.erase import erase_rows, plan_erasure
from spanboost.service.storage.folder_check import check_folder
from spanboost.service.storage.repair import repair_folder

pytestmark = pytest.mark.slow  # the file as a whole

SCOPES = ("predict", "learn", "admin")
TOKENS = {scope: f"{scope}-token-of-the-leader" for scope in SCOPES}


def metric(client, name):
    return _parse_metrics(client.get("/metrics").text)[f"spanboost_{name}"]


def leader_name(kind, client, folder):
    return str(client.base_url) if kind == "url" else folder


@pytest.mark.parametrize("kind", ["url", "folder"])
def test_the_model_is_the_same_at_the_same_record(tmp_path, kind):
    with leading(tmp_path / "leader") as leader:
        learn(leader, 0, 150)
        name = leader_name(kind, leader, tmp_path / "leader")
        with following(name, tmp_path / "copy") as follower:
            catch_up(follower, leader)
            assert follower.get("/model").content == leader.get("/model").content
            learn(leader, 150, 300, size=7)
            catch_up(follower, leader)
            assert follower.get("/model").content == leader.get("/model").content
            rows = [{"size": 0.3, "city": "a"}]
            one, other = (
                client.post("/predict?keep=false", json=rows).json()
                for client in (leader, follower)
            )
            assert one == other
        # stopped and started again, it catches up
        learn(leader, 300, 400)
        with following(name, tmp_path / "copy") as follower:
            catch_up(follower, leader)
            assert follower.get("/model").content == leader.get("/model").content


def test_a_new_leader_can_be_followed_from_its_first_record(tmp_path):
    with (
        leading(tmp_path / "leader") as leader,
        following(leader.base_url, tmp_path / "copy") as follower,
    ):
        learn(leader, 0, 30)
        catch_up(follower, leader)
        assert follower.get("/model").content == leader.get("/model").content


def test_controls_and_empty_records_are_followed(tmp_path):
    with (
        leading(tmp_path / "leader") as leader,
        following(leader.base_url, tmp_path / "copy") as follower,
    ):
        learn(leader, 0, 30)
        state, model = leader.engine.state, leader.get("/model").content
        learn(leader, 30, 60)
        leader.get("/model")  # after it, the writer does nothing, so this thread may write
        for control in (Control(ROLLBACK, {}, model), None):
            if control is None:  # as a repair writes it
                state.journal.append(b"")
                state.learn(decode_entry(memoryview(b"")), 0, 0)
            else:
                state.commit_control(control)
                state.obey(control)
            catch_up(follower, leader)
            assert follower.get("/model").content == model
        learn(leader, 60, 90)
        catch_up(follower, leader)
        assert follower.get("/model").content == leader.get("/model").content != model


def test_a_challenger_is_followed(tmp_path):
    with leading(tmp_path / "leader") as leader:
        learn(leader, 0, 30)
        assert leader.post("/challenger", json={"learner": "linear", "n": 2}).status_code == 200
        for last in (90, 150):  # the second follower copies nothing, and starts from its snapshot
            learn(leader, last - 60, last)
            with following(leader.base_url, tmp_path / "copy") as follower:
                catch_up(follower, leader)
                found = follower.get("/challenger").json()["challenger"]
                assert found == leader.get("/challenger").json()["challenger"]
                assert found["rows"] == last - 30
                assert follower.delete("/challenger").status_code == 409
        before = leader.get("/model").content
        with following(leader.base_url, tmp_path / "copy") as follower:
            assert leader.post("/challenger/promote").status_code == 200
            catch_up(follower, leader)
            assert follower.get("/model").content == leader.get("/model").content != before


@pytest.mark.parametrize("kind", ["url", "folder"])
def test_a_follower_leaves_learning_to_its_leader(tmp_path, kind):
    with leading(tmp_path / "leader") as leader:
        name = leader_name(kind, leader, tmp_path / "leader")
        with following(name, tmp_path / "copy") as follower:
            for path in (
                "/learn",
                "/learn?wait=true",
                "/predict",
                "/predict?keep=true",
                "/versions/0/rollback",
                "/versions/0/pin",
                "/challenger",
                "/challenger/promote",
            ):
                response = follower.post(path, json=ROWS[:1])
                assert response.status_code == 409
                why = response.json()["error"]
                assert why.startswith("this server is a follower and")
                assert why.endswith(f"send the request to its leader, {str(name).rstrip('/')}")
                assert ("?keep=false" in why) == path.startswith("/predict")
                assert "label" not in why
            assert follower.engine.state.journal.last == 0
            assert len(follower.engine.state.pending) == 0
            assert follower.get("/readyz").json()["checks"]["leader"] == "ok"


def test_metrics_show_how_far_a_follower_is_behind(tmp_path):
    with leading(tmp_path / "leader") as leader:
        learn(leader, 0, 30)
        with following(leader.base_url, tmp_path / "copy") as follower:
            catch_up(follower, leader)
            wait_until(lambda: metric(follower, "follower_lag_records") == 0)
            assert metric(follower, "follower_lag_seconds") == 0
            leader.server.stop()
            wait_until(lambda: follower.follower.problem is not None)
            assert metric(follower, "follower_lag_seconds") > 0
            ready = follower.get("/readyz")  # it still predicts
            assert ready.status_code == 200
            assert ready.json()["checks"]["leader"] != "ok"
    with following(tmp_path / "leader", tmp_path / "copy") as follower:
        wait_until(lambda: metric(follower, "follower_lag_records") == 0)


def test_nothing_that_was_shipped_is_lost_or_learned_twice_after_a_failover(tmp_path):
    with leading(tmp_path / "leader") as leader:
        learn(leader, 0, 200)
        with following(leader.base_url, tmp_path / "copy") as follower:
            learn(leader, 200, 250)
            catch_up(follower, leader)
    with leading(tmp_path / "copy") as leader:
        assert leader.engine.state.progress.rows == 250
        again = leader.post("/learn", json=ROWS[:260]).json()
        assert (again["duplicates"], again["learned"]) == (250, 10)
        assert leader.post("/predict", json=ROWS[0]).status_code == 200
        model = leader.get("/model").content
    with leading(tmp_path / "other") as other:
        learn(other, 0, 260)
        assert other.get("/model").content == model


def test_a_repaired_leader_is_noticed(copied):
    leader, copy = copied
    repair_folder(check_folder(leader))
    for name in ("url", "folder"):
        with leading(leader) as client:
            why = failure(client.base_url if name == "url" else leader, copy)
        assert "the journal was replaced after record 10" in why
        assert f"delete {copy} and start again" in why


def test_erased_rows_are_noticed(copied):
    leader, copy = copied
    erase_rows(plan_erasure(check_folder(leader), ["row 7"]))
    assert "the journal was replaced after record 10" in failure(leader, copy)


def test_a_copy_that_has_become_a_leader_is_noticed(copied):
    leader, copy = copied
    with leading(copy) as client:
        learn(client, 100, 110)
    assert "the journal ends before record 11" in failure(leader, copy)
    with leading(leader) as client:
        learn(client, 110, 130)
        assert "record 11 is not the one that the copy has" in failure(client.base_url, copy)


def test_a_leader_without_the_next_record_is_noticed(copied):
    leader, copy = copied
    with leading(leader, limits=StateLimits(snapshot_rows=20, remembered_ids=1)) as client:
        learn(client, 100, 300)
        assert "record 11 is no longer in the journal" in failure(client.base_url, copy)


@pytest.mark.parametrize("kind", ["url", "folder"])
def test_records_of_another_version_are_not_learned(copied, monkeypatch, kind):
    leader, copy = copied
    with leading(leader) as client:
        learn(client, 100, 110)
        monkeypatch.setattr(follower_module, "__version__", "0.0.7")
        why = failure(client.base_url if kind == "url" else leader, copy)
    assert "wrote record 11 of the leader" in why
    assert "this follower has version 0.0.7; use the same version" in why
    with leading(copy) as client:
        assert client.engine.state.journal.last == 10


def test_a_full_disk_only_delays_a_follower(copied, monkeypatch):
    leader, copy = copied
    monkeypatch.setattr(follower_module, "RETRY_SECONDS", 0.01)
    with leading(leader) as client, following(client.base_url, copy) as follower:
        append, errors = follower.engine.state.journal.append, iter("abc")

        def fail_sometimes(*args, **options):
            if next(errors, None) is not None:
                raise OSError(28, "No space left on device")
            return append(*args, **options)

        follower.engine.state.journal.append = fail_sometimes
        learn(client, 100, 150)
        catch_up(follower, client)
        assert follower.engine.failed_writes == 3
        assert follower.get("/model").content == client.get("/model").content


def test_a_copy_that_was_interrupted_begins_again(copied):
    leader, copy = copied
    for path in (copy / "snapshots").iterdir():  # the last step of a copy writes the snapshot
        path.unlink()
    with leading(leader) as client, following(client.base_url, copy) as follower:
        catch_up(follower, client)
        assert follower.get("/model").content == client.get("/model").content


def test_the_journal_needs_the_admin_token(tmp_path, monkeypatch):
    with leading(tmp_path / "leader", tokens=TOKENS) as leader:
        for path in ("/journal", "/snapshot"):
            assert leader.get(path).status_code == 401
            header = {"Authorization": f"Bearer {TOKENS['predict']}"}
            assert leader.get(path, headers=header).status_code in (401, 403)
        monkeypatch.setenv("SPANBOOST_LEADER_TOKEN", TOKENS["learn"])
        with pytest.raises(UsageError, match="set SPANBOOST_LEADER_TOKEN to the admin token"):
            failure(leader.base_url, tmp_path / "copy")
        monkeypatch.setenv("SPANBOOST_LEADER_TOKEN", TOKENS["admin"])
        with following(leader.base_url, tmp_path / "copy") as follower:
            catch_up(follower, leader)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("from=0&mark=0011223344556677", "'from' must be a number from 1 on"),
        ("from=x&mark=0011223344556677", "'from' must be a number from 1 on"),
        ("from=1", "'mark' must be the mark of a journal file"),
        ("from=1&mark=../x", "'mark' must be the mark of a journal file"),
        ("from=1&mark=0011223344556677&check=-1", "'check' must be the checksum of a record"),
    ],
)
def test_bad_positions_are_refused(tmp_path, query, why):
    with leading(tmp_path / "leader") as leader:
        response = leader.get(f"/journal?{query}")
        assert response.status_code == 422
        assert why in response.json()["error"]


def test_bad_options_are_refused(tmp_path):
    def parse(*words):
        return parser().parse_args(["serve", "--dir", str(tmp_path / "copy"), *words])

    with pytest.raises(UsageError, match="takes the model and the meaning of columns"):
        check_follow_options(parse("--follow", "http://127.0.0.1:1", *SMALL))
    with pytest.raises(UsageError, match="expected the URL of a server"):
        copy_leader(parse("--follow", str(tmp_path / "none")), lambda: None)
    (tmp_path / "copy").mkdir()
    with pytest.raises(UsageError, match="name the same folder"):
        copy_leader(parse("--follow", str(tmp_path / "copy")), lambda: None)
    (tmp_path / "leader").mkdir()
    (tmp_path / "copy" / "file").touch()
    with pytest.raises(UsageError, match="not empty and not the copy of a follower"):
        copy_leader(parse("--follow", str(tmp_path / "leader")), lambda: None)


def test_a_first_copy_waits_for_its_leader(tmp_path, monkeypatch):
    monkeypatch.setattr(following_module, "RETRY_SECONDS", 0.01)
    with leading(tmp_path / "leader") as leader:
        address = str(leader.base_url)
    words = ["serve", "--dir", str(tmp_path / "copy"), "--follow", address]
    attempts = iter("ab")
    with pytest.raises(StopIteration):
        copy_leader(parser().parse_args(words), lambda: next(attempts))
    assert not (tmp_path / "copy" / "snapshots").exists()
