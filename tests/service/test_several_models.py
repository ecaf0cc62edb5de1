"""Several models in one server: paths, tokens, readiness, metrics and failures."""

import os
import re
import subprocess
import sys

import httpx
import pytest
from serving import Server, serving_app, wait_until

from spanboost.cli.commands.serve import open_state
from spanboost.cli.parser import parser
from spanboost.client import Client, _parse_metrics
from spanboost.models.files import from_bytes
from spanboost.service.http.app import build_app
from spanboost.service.http.metrics import merge_metrics
from spanboost.service.http.several_models import SeveralModels
from spanboost.service.learning.engine import Engine
from spanboost.service.limits import RequestLimits, StateLimits
from spanboost.service.memory import available_memory, plan_memory

ROWS = [{"size": k / 10, "label": 2 * k} for k in range(20)]
TOKENS = {scope: scope * 4 for scope in ("predict", "learn", "admin")}


def engine(folder):
    words = ["serve", "--dir", str(folder), "--learner", "linear", "-n", "4"]
    return Engine(open_state(parser("serve").parse_args(words), StateLimits()))


@pytest.fixture
def client(tmp_path):
    """Models: `open` and `late` without tokens, `closed` with tokens; `late` has not started."""
    few = RequestLimits(rows=3)
    apps = {
        "open": build_app(engine(tmp_path / "open"), limits=few),
        "closed": build_app(engine(tmp_path / "closed"), TOKENS),
        "late": build_app(None),
    }
    with serving_app(SeveralModels(apps, {"admin": "common-admin-token"})) as client:
        client.apps = apps
        yield client


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_each_model_learns_its_own_rows(client):
    assert client.post("/m/open/learn?wait=true", json=ROWS[:3]).json()["learned"] == 3
    assert client.apps["open"].health.engine.state.progress.rows == 3
    assert client.apps["closed"].health.engine.state.progress.rows == 0
    model = from_bytes(client.get("/m/open/model").content)
    answer = client.post("/m/open/predict?keep=false", json={"size": 0.5}).json()
    assert answer["prediction"] == model.predict_many([{"size": 0.5}])[0]


def test_each_model_has_its_own_limits_and_tokens(client):
    assert client.post("/m/open/learn", json=ROWS[:4]).status_code == 400
    for token in (None, "common-admin-token", TOKENS["predict"]):
        headers = {} if token is None else bearer(token)
        assert client.post("/m/closed/learn", json=ROWS, headers=headers).status_code == 401
        assert client.get("/m/closed/metrics", headers=headers).status_code == 401
    answer = client.post("/m/closed/learn", json=ROWS, headers=bearer(TOKENS["learn"]))
    assert answer.json()["learned"] == 20


def test_common_paths(client):
    assert client.get("/healthz").json() == {"status": "alive"}
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"] == "late: the server is starting: opening the folder"
    states = {name: one["status"] for name, one in answer.json()["models"].items()}
    assert states == {"open": "ready", "closed": "ready", "late": "starting"}
    client.apps["late"].health.start_failed = True
    assert "late: the model could not be started; the log" in client.get("/readyz").json()["error"]
    failed = client.post("/m/late/predict", json={"size": 1})
    assert (failed.status_code, failed.json()["error"]) == (
        503,
        "the model could not be started; the log of the server has the reason; retry later",
    )
    del client.apps["late"]
    assert client.get("/readyz").json()["status"] == "ready"
    assert client.get("/m/open/readyz").json()["status"] == "ready"


def test_unknown_paths_are_refused_in_one_sentence(client):
    headers = bearer("common-admin-token")
    for path in ("/", "/predict", "/m/none/predict", "/m/", "/m/none", "/m//predict", "/x/open/"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 404, path
        assert "the paths of the models begin with /m/open/, /m/closed/" in answer.json()["error"]
    assert client.get("/m/none/predict").status_code == 401
    assert client.get("/m/open/nothing").status_code == 404
    # the path of another model behind that of the first one reaches neither
    assert client.get("/m/open/m/closed/model").status_code == 404


def test_tokens_cannot_be_avoided_by_a_repeated_prefix(tmp_path):
    app = build_app(engine(tmp_path), {"predict": TOKENS["predict"]})
    with serving_app(SeveralModels({"a": app}, {})) as client:
        assert client.post("/m/a/predict", json=[]).status_code == 401
        assert client.post("/m/a/m/a/predict", json=[]).status_code == 404
        assert client.post("/m/a//predict", json=[]).status_code == 404


def test_dashboard_has_addresses_below_the_model(client):
    answer = client.get("/m/open", headers=bearer("common-admin-token"))
    assert (answer.status_code, answer.headers["location"]) == (308, "/m/open/")
    page = client.get("/m/open/")
    assert not re.findall(r'(?:href|src)="/', page.text)
    assert client.get("/m/open/page.js").status_code == 200
    servers = client.get("/m/open/openapi.json").json()["servers"]
    assert servers == [{"url": "/m/open"}]


def test_metrics_name_the_model(client):
    client.post("/m/open/learn?wait=true", json=ROWS[:3])
    assert client.get("/metrics").status_code == 401
    text = client.get("/metrics", headers=bearer("common-admin-token")).text
    metrics = _parse_metrics(text)
    assert metrics['spanboost_learned_rows_total{model="open"}'] == 3
    assert metrics['spanboost_learned_rows_total{model="closed"}'] == 0
    assert metrics['spanboost_ready{model="late"}'] == 0
    assert metrics['spanboost_requests_total{model="open",path="/learn",status="200"}'] == 1
    assert "spanboost_memory_bytes" in metrics
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    assert len(names) == len(set(names))


def test_merged_metrics_are_grouped_by_name():
    one = '# HELP a A.\n# TYPE a gauge\na 1\n# HELP b B.\n# TYPE b gauge\nb{x="{ "} 2\n'
    two = '# HELP b B.\n# TYPE b gauge\nb{x="y"} 3\n# HELP a A.\n# TYPE a gauge\na NaN\n'
    assert merge_metrics({"1": one, "2": two}) == (
        "# HELP a A.\n# TYPE a gauge\n"
        'a{model="1"} 1\na{model="2"} NaN\n'
        "# HELP b B.\n# TYPE b gauge\n"
        'b{model="1",x="{ "} 2\nb{model="2",x="y"} 3\n'
    )


def test_models_share_the_default_memory():
    half = available_memory() // 2
    assert plan_memory(None, 0, 0.5).total == max(half // 2, plan_memory(1 << 29).total)
    assert plan_memory(1 << 30, 0, 0.5).total == 1 << 30


CONFIG = """
[models.a]
dir = "state/a"
learner = "linear"
n = 4
[models.b]
dir = "state/b"
learner = "linear"
n = 2
label = "price"
[models.b.tokens]
predict = "B_PREDICT"
learn = "B_LEARN"
admin = "B_ADMIN"
"""


def start(folder):
    path = folder / "service.toml"
    path.write_text(CONFIG)
    server = Server(None, "--config", str(path))
    base = f"http://127.0.0.1:{server.port}"
    http = httpx.Client(base_url=base, trust_env=False, timeout=60)
    wait_until(lambda: '"starting"' not in http.get("/readyz").text)
    return server, base, http


@pytest.fixture
def secrets(monkeypatch):
    for scope in ("PREDICT", "LEARN", "ADMIN"):
        monkeypatch.setenv(f"B_{scope}", f"secret of b: {scope}")


@pytest.mark.process
def test_models_survive_a_restart_and_the_failure_of_another(tmp_path, secrets):
    server, base, http = start(tmp_path)
    with Client(f"{base}/m/a") as a, Client(f"{base}/m/b", learn_token="secret of b: LEARN") as b:
        a.learn(ROWS, wait=True)
        b.learn([{"size": 1, "price": 2}], wait=True)
    before = http.get("/m/a/model").content
    http.close()
    assert server.stop() == 0
    snapshots = [*(tmp_path / "state/b/snapshots").iterdir()]
    for path in snapshots:
        path.write_bytes(b"damaged")
    server, base, http = start(tmp_path)
    assert http.get("/m/a/model").content == before
    assert http.get("/readyz").json()["models"]["b"]["status"] == "failed"
    assert http.post("/m/b/learn", json=[]).status_code == 401
    http.close()
    assert server.stop() == 0
    log = "".join(server.log)
    assert "the model 'b' could not be started: " in log
    assert "no readable snapshot" in log
    assert "Traceback" not in log


@pytest.mark.process
def test_a_server_without_any_model_ends(tmp_path):
    (tmp_path / "state").write_text("not a folder")
    path = tmp_path / "service.toml"
    path.write_text(CONFIG.partition("[models.b]")[0])
    command = [sys.executable, "-m", "spanboost", "serve", "--config", path, "--port", "0"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert "the model 'a' could not be started: " in ended.stderr
    assert ended.stderr.endswith("none of the models could be started; the log says why\n")


@pytest.mark.process
def test_a_model_that_can_no_longer_learn_ends_the_process(tmp_path, secrets):
    """Only a new start can find out what is on the disk after a failed sync."""
    program = tmp_path / "broken.py"
    program.write_text(
        "import os, sys, spanboost.service.storage.record_files as files\n"
        "def fail(file):\n"
        "    if os.path.exists(os.environ['TRIGGER']):\n"
        "        raise OSError(5, 'Input/output error')\n"
        "files._sync = fail\n"
        "from spanboost.cli.main import main\n"
        "if __name__ == '__main__': sys.exit(main())\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIGGER", str(tmp_path / "trigger"))
        path = tmp_path / "service.toml"
        path.write_text(CONFIG)
        server = Server(None, "--config", str(path), program=(str(program),))
    (tmp_path / "trigger").touch()
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as http:
        assert http.post("/m/a/learn", json=ROWS, timeout=60).status_code == 503
    server.wait()
    assert server.process.returncode == 1
    assert "the server ends: model 'a': " in "".join(server.log)
    assert os.path.exists(tmp_path / "trigger")
