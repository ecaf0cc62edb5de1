"""Fixtures of the tests of the service."""

import pytest
from leaders import catch_up, following, leading, learn

from spanboost.cli.main import main


@pytest.fixture
def run(capsys):
    """Run a command and return its exit status and its output."""

    def run(*words):
        status = main([*map(str, words)])
        output = capsys.readouterr()
        return status, output.out + output.err

    return run


@pytest.fixture
def copied(tmp_path):
    """A leader with 10 records and the copy of a follower, both stopped."""
    leader, copy = tmp_path / "leader", tmp_path / "copy"
    with leading(leader) as client:
        learn(client, 0, 100)
        with following(client.base_url, copy) as follower:
            catch_up(follower, client)
    return leader, copy
