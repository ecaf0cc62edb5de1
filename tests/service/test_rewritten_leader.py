"""A follower never diverges silently when a journal is restored, repaired or rows are erased."""

import shutil

import pytest
from leaders import catch_up, failure, following, leading, learn

from spanboost.cli.main import main
from spanboost.errors import UsageError

pytestmark = pytest.mark.slow  # the file as a whole


def restore(leader, *words):
    """Replace the folder of the leader by one that was restored from it."""
    new = leader.with_name("restored")
    assert main(["restore", str(leader), "--dir", str(new), *words]) == 0
    shutil.rmtree(leader)
    new.rename(leader)


def erase(leader, *ids):
    assert main(["erase", str(leader), *ids, "--yes"]) == 0


REWRITES = {
    "restored": restore,
    "restored at an earlier record": lambda leader: restore(leader, "--to", "7"),
    "first row erased": lambda leader: erase(leader, "row 0"),
    "last row erased": lambda leader: erase(leader, "row 99"),
}


@pytest.mark.parametrize("more", [0, 60])
@pytest.mark.parametrize("rewrite", REWRITES.values(), ids=REWRITES)
def test_a_follower_of_a_rewritten_leader_ends_and_a_new_copy_is_equal(copied, rewrite, more):
    leader, copy = copied
    rewrite(leader)
    with leading(leader) as client:
        learn(client, 100, 100 + more)
        for name in (client.base_url, leader):
            why = failure(name, copy)
            assert "the journal was replaced after record 10" in why
            assert f"delete {copy} and start again" in why
        shutil.rmtree(copy)
        with following(client.base_url, copy) as follower:
            catch_up(follower, client)
            assert follower.get("/model").content == client.get("/model").content
            learn(client, 200, 230)
            catch_up(follower, client)
            assert follower.get("/model").content == client.get("/model").content


@pytest.mark.parametrize("command", ["erase", "repair", "quarantine", "restore"])
def test_a_copy_that_was_changed_is_not_followed_further(copied, command):
    """Its model differs from that of the leader at the same record."""
    leader, copy = copied
    if command == "erase":
        erase(copy, "row 7")
    elif command == "restore":
        restore(copy, "--to", "9")
    elif command == "quarantine":
        assert main(["repair", str(copy), "--quarantine", "10", "--yes"]) == 0
    else:
        path = min((copy / "journal").iterdir())
        path.write_bytes(path.read_bytes().replace(b"row 35", b"row xx"))
        assert main(["repair", str(copy), "--yes"]) == 0
    with leading(leader) as client:
        for name in (client.base_url, leader):
            with pytest.raises(UsageError, match="not the copy of a follower"):
                failure(name, copy)
    with leading(copy) as client:  # it can be a leader
        learn(client, 100, 130)
