"""Executors without a cluster: tuning with snapshots gives the same bits."""

import contextlib
import os
import sys
import types

import numpy as np
import pytest
from streams import FLATS, HOUSES, as_csv, as_jsonl, as_vw, put
from weighted_streams import stream

from spanboost import DataError, LabelWarning, LinearSGD, Network, Rows, Stumps, Trees, save, tune
from spanboost.cli.main import attach_values, main
from spanboost.data.batch import Batch, join_batches
from spanboost.data.schema import Schema
from spanboost.data.stream import Stream
from spanboost.data.target import NumberTarget
from spanboost.errors import ClusterError, UserError, install_hint
from spanboost.parallel import cluster
from spanboost.parallel.executor import LocalExecutor
from spanboost.parallel.private_cluster import check_version, require_token
from spanboost.rows.validation import Sparse

GRID = {"rate": [0.2, 1.0], "eta": [0.25, 1.0]}


@pytest.mark.parametrize(
    ("learner", "grid"),
    [
        (LinearSGD(), GRID),
        (Stumps(), GRID),
        (Network(hidden=3), GRID),
        (Trees(grace=4), {"eta": [0.25, 1.0]}),
    ],
)
@pytest.mark.slow
def test_tuning_on_an_executor_equals_local_tuning(learner, grid, tmp_path, monkeypatch):
    monkeypatch.setattr("spanboost.tuning.search.ROWS", 30)  # many tasks
    monkeypatch.setattr("spanboost.tuning.search.BANK_COPIES", 8)  # many groups
    X, y, weights = stream()
    reported = []
    given = {"learner": learner, "grid": grid, "n": 4, "label_range": "auto", "split": 0.3}
    here = tune(X, y, weights, **given)
    there = tune(X, y, weights, executor=LocalExecutor(), progress=reported.append, **given)
    assert sum(reported) == len(y)
    assert len(there._groups) > 1
    np.testing.assert_array_equal(here.loss_first, there.loss_first)
    np.testing.assert_array_equal(here.loss_rest, there.loss_rest)
    for one, name in ((here, "here"), (there, "there")):
        save(one.model(), tmp_path / name)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("local", "cannot start a Ray cluster on this machine: the node timed out"),
        ("auto", "cannot connect to a Ray cluster at auto: the node timed out"),
    ],
)
def test_a_cluster_that_does_not_start_is_one_sentence(monkeypatch, address, message):
    def fail(*arguments, **options):
        raise Exception("the node timed out\nand more lines")

    ray = types.ModuleType("ray")
    ray.__version__, ray.is_initialized, ray.init = "99.0", lambda: False, fail
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(cluster, "listen_on_loopback", lambda: contextlib.nullcontext({}))
    monkeypatch.setattr(cluster, "require_token", lambda: None)
    with pytest.raises(ClusterError) as failure:
        cluster.Cluster(address)
    assert str(failure.value) == message


def test_a_bad_row_is_reported():
    X, y, _ = stream()
    X[100, 2] = np.inf
    with pytest.raises(DataError, match=r"row 100: column \d is infinite"):
        tune(
            X, y, learner=LinearSGD(), grid=GRID, n=4, label_range="auto", executor=LocalExecutor()
        )


def test_warnings_are_issued_once():
    X, y, _ = stream()
    y[90] = 1e6
    with pytest.warns(LabelWarning, match="row 90") as caught:
        tune(
            X, y, learner=LinearSGD(), grid=GRID, n=4, label_range="auto", executor=LocalExecutor()
        )
    assert len(caught) == 1


def test_read_only_arrays_are_encoded_as_writeable_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)).astype(np.float32)
    codes = rng.integers(0, 3, (20, 2))
    sparse = Sparse(np.arange(21), np.zeros(20, np.int64), np.ones(20, np.float32), (20,))
    learner = LinearSGD()
    for rows in (X, Rows(X, codes), sparse):
        block = learner.encode(rows)
        for array in (X, codes, *sparse[:3]):
            array.flags.writeable = False
        again = learner.encode(rows)
        assert all(part.flags.writeable for part in again if isinstance(part, np.ndarray))
        assert all(np.array_equal(a, b) for a, b in zip(block, again, strict=True))
        for array in (X, codes, *sparse[:3]):
            array.flags.writeable = True


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("flats.csv", as_csv(FLATS), "table"),
        ("houses.csv", as_csv(HOUSES), "table"),
        ("houses.vw", as_vw(HOUSES), "vw"),
        ("houses.jsonl", as_jsonl(HOUSES), "json"),
    ],
)
def test_batches_with_labels_are_joined(name, text, form, tmp_path, monkeypatch):
    files = [put(tmp_path, f"{k}{name}", text) for k in range(2)]

    def rows(batches):
        found = []
        for batch in batches:
            found += [row for k in range(batch.rows) for row in [batch.part(k, k + 1)]]
        return found

    def read():
        batches = Stream([str(file) for file in files]).batches(
            Schema(form, NumberTarget(None)), labelled=True
        )
        for batch in batches:
            for first in range(0, batch.rows, 7):
                yield batch.part(first, min(first + 7, batch.rows))

    large = list(join_batches(read(), 64))
    assert [batch.rows for batch in large] == [70, 70, 60] * 2
    for one, other in zip(rows(read()), rows(large), strict=True):
        assert repr(one) == repr(other)


def test_an_address_is_an_argument_of_ray_and_a_file_is_not():
    for words in (["10.0.0.1:6379"], ["ray://head:10001"], ["auto"], ["local"]):
        assert attach_values(["--ray", *words, "x"]) == [f"--ray={words[0]}", "x"]
    for words in (["data.csv"], ["s3://place/data.csv"], ["-"], ["--quiet"], []):
        assert attach_values(["tune", "--ray", *words]) == ["tune", "--ray=local", *words]


def test_ray_address_is_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert attach_values(["--ray"]) == ["--ray=head:6379"]


def test_missing_ray_is_reported(data, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["tune", str(data), "--ray"]) == 2
    output = capsys.readouterr().err
    assert output == f"spanboost: clusters need Ray: {install_hint('ray')}\n"


def test_batches_without_labels_are_joined():
    one = Batch(np.ones((2, 1)), None, None, "a", np.arange(2))
    assert [batch.rows for batch in join_batches([one, one, one], 4)] == [4, 2]


@pytest.mark.parametrize("version", ["2.40.0", "2.58.1", "1.13.0", "2.9.3"])
def test_versions_of_ray_without_tokens_are_refused(version):
    with pytest.raises(UserError, match=rf"Ray 2\.59 or later.*found {version}"):
        check_version(version)


@pytest.mark.parametrize("version", ["2.59.0", "2.60.0", "3.0.0.dev0"])
def test_versions_of_ray_with_tokens_are_accepted(version):
    check_version(version)


@pytest.mark.parametrize("mode", [None, "disabled", "token"])
@pytest.mark.parametrize("source", [None, "variable", "path", "file"])
def test_a_new_cluster_has_a_token(monkeypatch, tmp_path, mode, source):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("RAY_AUTH_MODE", mode or "")
    if source == "variable":
        monkeypatch.setenv("RAY_AUTH_TOKEN", "mine")
    elif source == "path":
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    elif source == "file":
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("mine")
    require_token()
    assert os.environ.get("RAY_AUTH_MODE", "token") == "token"  # unset: on by default
    token = os.environ["RAY_AUTH_TOKEN"]
    assert {None: len(token) == 64, "variable": token == "mine"}.get(source, token == "")
