"""The dashboard in a real browser: it shows the values of /metrics."""

import os
import random
import signal

import httpx
import pytest
from chromium import CHROMIUM, browser
from serving import OPTIONS, Server, serving

from spanboost.client import Client

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
METRICS = {
    "learned": "learned_rows_total",
    "predicted": "predicted_rows_total",
    "pending": "pending_rows",
    "waiting": "waiting_rows",
    "duplicates": "duplicate_rows_total",
    "refused": "refused_rows_total",
    "clipped": "labels_clipped_total",
    "loss": "loss",
    "recent_loss": "recent_loss",
}
READ_VALUES = "Object.fromEntries([...document.querySelectorAll('data')].map(d => [d.id, d.value]))"


def send_traffic(client, rows=1500):
    rng = random.Random(0)
    some = [{"size": rng.random(), "city": rng.choice("abc")} for _ in range(rows)]
    labelled = [row | {"label": 10 * row["size"] + (row["city"] == "a")} for row in some]
    for first in range(0, rows, 100):
        client.learn(labelled[first : first + 100])
    predictions = client.predict_many(some[:50])
    client.label_many({prediction.id: 1.0 for prediction in predictions[:20]})
    client.label(predictions[0].id, 1.0)
    client.learn([{"size": [1], "label": 1}], skip=True)


def test_dashboard_shows_the_metrics(tmp_path):
    with (
        serving(tmp_path, "--budget", "fast") as server,
        Client(server.address) as client,
        browser() as page,
    ):
        send_traffic(client, 400)
        while (expected := client.metrics())["spanboost_waiting_rows"]:
            pass
        page.open(f"{server.address}/")
        page.wait_until(f"document.getElementById('learned').value == {420}")
        shown = page.run(READ_VALUES)
        for name, metric in METRICS.items():
            assert float(shown[name]) == expected[f"spanboost_{metric}"], name
        for rows in ("all", "recent"):
            for name in ("rmse", "mae", "r2"):
                metric = f'spanboost_{name}{{rows="{rows}"}}'
                assert float(shown[f"{rows}-{name}"]) == expected[metric]
        assert "420" in page.run("document.getElementById('metrics-rows').textContent")
        assert shown["learned"] == "420"
        assert (shown["duplicates"], shown["refused"], shown["pending"]) == ("1", "1", "30")
        weights = page.run(
            "Object.fromEntries([...document.querySelectorAll('#weights tr')]"
            ".map(r => [r.cells[0].textContent, r.querySelector('progress').value]))"
        )
        for name, weight in weights.items():
            assert weight == pytest.approx(expected[f'spanboost_expert_weight{{expert="{name}"}}'])
        assert page.run("document.querySelectorAll('#pairs circle').length") == 200
        assert page.run("document.querySelectorAll('#curve path').length") == 2
        client.learn([{"size": 0.5, "label": 3}])  # the page updates itself
        page.wait_until("document.getElementById('learned').value == 421")
        assert all(
            address.startswith(server.address)
            for address in page.requested_urls()
            if "about" not in address
        )
        assert page.errors() == []


def test_dashboard_is_accessible_by_keyboard_and_screen_reader(tmp_path):
    with serving(tmp_path) as server, Client(server.address) as client, browser() as page:
        send_traffic(client)
        page.open(f"{server.address}/", width=400)
        page.wait_until("document.getElementById('status').dataset.state == 'live'")
        assert page.run("document.documentElement.lang") == "en"
        assert page.run("document.documentElement.scrollWidth <= innerWidth")  # also on a phone
        names = "[...document.querySelectorAll('svg')].map(s => s.getAttribute('aria-label'))"
        assert all(name and "no rows" not in name for name in page.run(names))
        assert page.run("document.querySelectorAll('[aria-live=assertive]').length") == 0
        focus = "(e => e.id || e.className || e.tagName)(document.activeElement)"
        reached = []
        for _ in range(6):
            page.press("Tab", 9)
            reached.append(page.run(focus))
        assert reached[:3] == ["skip", "pause", "SUMMARY"]
        page.run("document.getElementById('pause').focus()")
        page.press("Enter", 13, "\r")
        assert page.run("document.getElementById('status').textContent") == "paused"
        client.learn([{"size": 0.5, "label": 3}])
        page.press("Enter", 13, "\r")
        page.wait_until("document.getElementById('learned').value == 1521")
        page.run("document.querySelector('summary').focus()")
        page.press("Enter", 13, "\r")
        page.wait_until("document.querySelectorAll('#curve-table tr').length > 5")


def test_a_huge_loss_is_printed_short_and_leaves_later_averages(tmp_path):
    options = ["--learner", "linear", "-n", "4", "--loss", "absolute"]
    with serving(tmp_path, *options) as server, Client(server.address) as client, browser() as page:
        send_traffic(client, 400)
        client.learn([{"size": 0.5, "city": "a", "label": 1e300}])
        send_traffic(client, 1500)
        page.open(f"{server.address}/")
        page.run("document.getElementById('curve-table').closest('details').open = true")
        page.wait_until("document.querySelectorAll('#curve-table tr').length > 5")
        loss = page.run("document.getElementById('loss').textContent")
        assert len(loss) < 12
        assert loss.endswith("e+296")
        cells = (
            "[...document.querySelectorAll('#curve-table td:last-child')].map(d => d.textContent)"
        )
        assert all(0 < float(text) < 10 for text in page.run(cells)[-5:])


def test_dashboard_shows_intervals_and_their_coverage(tmp_path):
    options = ["--learner", "linear", "-n", "4", "--intervals"]
    with serving(tmp_path, *options) as server, Client(server.address) as client, browser() as page:
        page.open(f"{server.address}/")
        page.wait_until("document.getElementById('status').dataset.state == 'live'")
        assert page.run("document.getElementById('intervals').hidden")
        send_traffic(client, 10)  # the first intervals are infinite
        page.wait_until("!document.getElementById('intervals').hidden")
        send_traffic(client, 1500)
        page.wait_until("document.getElementById('coverage').children.length > 0")
        page.wait_until("document.querySelectorAll('#band circle').length == 200")
        while (expected := client.metrics())["spanboost_waiting_rows"]:
            pass
        learned = int(expected["spanboost_learned_rows_total"])
        page.wait_until(f"document.getElementById('learned').value == {learned}")
        shown = float(page.run("document.getElementById('interval_coverage').value"))
        assert shown == expected["spanboost_interval_coverage"]
        outside = page.run("document.querySelectorAll('#band .outside').length")
        label = page.run("document.getElementById('band').getAttribute('aria-label')")
        assert label.endswith(
            f"the last 200 rows; {outside} label{'s' if outside != 1 else ''} outside."
        )
        assert "NaN" not in page.run("document.getElementById('intervals').innerHTML")
        assert page.errors() == []


@pytest.mark.parametrize("loss", [["logistic"], ["softmax", "--classes", "2"]])
def test_dashboard_shows_class_names(tmp_path, loss):
    options = ["--learner", "linear", "-n", "4", "--loss", *loss]
    with serving(tmp_path, *options) as server, Client(server.address) as client, browser() as page:
        page.open(f"{server.address}/")
        page.wait_until("document.getElementById('pairs').textContent == 'no rows yet'")
        for _ in range(3):
            client.learn([{"x": k % 2, "label": ["no", "maybe"][k % 2]} for k in range(100)])
        page.wait_until("document.getElementById('learned').value == 300")
        label = page.run("document.getElementById('pairs').getAttribute('aria-label')")
        assert label == "Predicted correctly: 200 of the last 200 rows (2 classes)."
        texts = page.run("[...document.querySelectorAll('#pairs text')].map(t => t.textContent)")
        assert texts == ["no", "maybe", "no", "maybe", "label", "prediction"]
        assert page.run("document.querySelectorAll('#pairs circle').length") == 2
        assert page.run("document.getElementById('pairs').clientWidth") <= 480
        assert page.errors() == []


STATUS = "document.getElementById('status')"
SILENT = f"{STATUS}.textContent.includes('does not respond')"


def test_dashboard_shows_that_the_server_has_stopped(tmp_path):
    server = Server(tmp_path, *OPTIONS)
    with browser() as page:
        page.open(f"{server.address}/")
        page.wait_until(f"{STATUS}.dataset.state == 'live'")
        os.kill(server.process.pid, signal.SIGSTOP)  # its connections stay open
        page.wait_until(SILENT)
        os.kill(server.process.pid, signal.SIGCONT)
        page.wait_until(f"{STATUS}.dataset.state == 'live'")
        assert server.stop() == 0
        page.wait_until(SILENT)
        server = Server(tmp_path, *OPTIONS, port=server.port)  # 503 until it is ready
        page.wait_until(f"{STATUS}.dataset.state == 'live'")
    assert server.stop() == 0


def text_of(id):
    return f"document.getElementById('{id}').textContent"


def test_dashboard_shows_the_last_version(tmp_path):
    with serving(tmp_path) as server, Client(server.address) as client, browser() as page:
        page.open(f"{server.address}/")
        page.wait_until(f"/^Last version: record 0, .* since: 0\\.$/.test({text_of('version')})")
        client.learn([{"size": 0.5, "label": 3}], wait=True)
        page.wait_until(f"{text_of('version')}.endsWith('Records learned since: 1.')")
        assert page.run("document.getElementById('follower').hidden")
        assert page.run("document.getElementById('challenger').hidden")
        answer = httpx.post(f"{server.address}/challenger", json={"learner": "linear", "n": 2})
        assert answer.status_code == 200, answer.text
        client.learn([{"size": 0.25, "label": 2}], wait=True)
        page.wait_until(f"{text_of('challenger')}.includes('over 1 row.')")
        assert page.run(text_of("challenger")).endswith("; no difference is certain yet.")
        ages = "[0, 1, 119.5, 120, 7200, 86400 * 3000].map(duration).join('; ')"
        expected = "0 seconds; 1 second; 119 seconds; 2 minutes; 2 hours; 3,000 days"
        assert page.run(ages) == expected
        behind = "describeFollower({leader: 'L', records: 1200, seconds: 9.5, responds: true})"
        assert page.run(behind) == "Follower of L: 1,200 records (9 seconds) behind."
        assert page.errors() == []


def test_dashboard_of_a_follower_shows_its_leader(tmp_path):
    leader = Server(tmp_path / "leader", *OPTIONS)
    with serving(tmp_path / "copy", "--follow", leader.address) as server, browser() as page:
        with Client(leader.address) as client:
            client.learn([{"size": 0.5, "label": 3}], wait=True)
        page.open(f"{server.address}/")
        page.wait_until("document.getElementById('learned').value == 1")
        name = f"Follower of {leader.address}: "
        page.wait_until(f"{text_of('follower')} == '{name}all records are learned.'")
        assert leader.stop() == 0
        page.wait_until(f"{text_of('follower')} == '{name}the leader does not respond.'")
        assert page.run(f"{STATUS}.dataset.state") == "live"  # it still predicts
        assert page.errors() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_both_color_schemes(tmp_path, scheme):
    with serving(tmp_path) as server, Client(server.address) as client, browser() as page:
        send_traffic(client, 200)
        page.open(f"{server.address}/", scheme)
        page.wait_until("document.getElementById('status').dataset.state == 'live'")
        for element in ("h1", "dt", "dd", ".note", "footer", "a", "#status", "svg text"):
            assert page.run(CONTRAST.replace("ELEMENT", element)) >= 4.5, element


CONTRAST = """(() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const one = document.querySelector("ELEMENT");
  const style = getComputedStyle(one);
  let behind = one;
  while (behind.parentElement && numbers(getComputedStyle(behind).backgroundColor)[3] === 0) {
    behind = behind.parentElement;
  }
  const ink = light(numbers(one instanceof SVGElement ? style.fill : style.color));
  const ground = light(numbers(getComputedStyle(behind).backgroundColor));
  return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
})()"""
