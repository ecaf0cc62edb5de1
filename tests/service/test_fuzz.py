"""Random requests get only responses that the OpenAPI description allows."""

import http.client
import io
import json
import os
import random

import pyarrow as pa
import pytest
from serving import serving

pytestmark = pytest.mark.process
CASES = int(os.environ.get("SPANBOOST_CASES", "600"))
JSON, LINES = "application/json", "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
KINDS = [JSON, JSON, JSON, LINES, ARROW, "text/plain", "", "application/json; charset=utf-8"]
NAMES = ["size", "city", "id", "label", "", "ü", "x" * 300, "\u0000", "__proto__", "rows"]
FLAGS = {
    "/predict": ["keep=false", "keep=true", "keep=1"],
    "/learn": ["wait=false", "wait=true", "wait=1"],
}
TEXTS = ["", "a", "Ulm", "NaN", "1e999", "'", "\u2028", "\U0001f600", "x" * 5000, "null", "-0"]


class Fuzzer:
    """Draws random requests."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def number(self):
        rng = self.rng
        wild = [0, -0.0, 1e-320, 3.4e38, 3.5e38, 1e308, 2**63, -(2**64), 10**400, True]
        return rng.choice([rng.uniform(-9, 9), rng.randrange(-5, 99), rng.choice(wild)])

    def value(self, depth=3):
        kind = self.rng.randrange(9 if depth else 7)
        if kind < 4:
            return self.number()
        if kind < 6:
            return self.rng.choice(TEXTS)
        if kind == 6:
            return None
        if kind == 7:
            return [self.value(depth - 1) for _ in range(self.rng.randrange(3))]
        return {self.rng.choice(NAMES): self.value(depth - 1) for _ in range(self.rng.randrange(3))}

    def row(self):
        rng = self.rng
        if rng.random() < 0.2:
            return self.value()
        row = {"size": rng.uniform(0, 1), "city": rng.choice("abc"), "label": rng.uniform(-5, 5)}
        if rng.random() < 0.3:
            row["id"] = rng.choice([str(rng.random()), "same", rng.randrange(99), self.value(1)])
        if rng.random() < 0.3:
            row[rng.choice(NAMES)] = self.value()
        if rng.random() < 0.2:
            row.pop(rng.choice(list(row)))
        return row

    def text(self):
        rng = self.rng
        what = self.row() if rng.random() < 0.5 else [self.row() for _ in range(rng.randrange(9))]
        text = json.dumps(what, ensure_ascii=rng.random() < 0.5)
        if isinstance(what, list) and rng.random() < 0.3:
            text = "\n".join(map(json.dumps, what))
        return text.encode("utf-8", "surrogatepass")

    def arrow(self):
        rng, rows = self.rng, self.rng.randrange(4)
        columns = {"size": [1.5] * rows, "label": [2.0] * rows}
        odd = [[None], [1], ["a"], [[1]], [True], [float("inf")], [b"a"], [{"a": 1}]]
        columns[rng.choice(NAMES)] = rng.choice(odd) * rows
        table = pa.table(columns)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue()

    def body(self):
        rng = self.rng
        data = self.arrow() if rng.random() < 0.2 else self.text()
        for _ in range(rng.choice([0, 0, 0, 1, 5])):
            if data:
                place = rng.randrange(len(data))
                data = data[:place] + bytes([rng.randrange(256)]) + data[place + rng.randrange(2) :]
        hostile = [b"[" * 50_000, b'{"a":' * 50_000, b"9" * 50_000, b"\xff\xfe", b"", b"\0" * 999]
        return rng.choice(hostile) if rng.random() < 0.05 else data

    def query(self, path):
        wild = ["on_error=skip", "on_error=stop", "on_error=", *FLAGS.get(path, [])]
        if path not in FLAGS or self.rng.random() < 0.1:
            wild += ["wiat=true", "x=%00", "%ff=%ff"]
        some = self.rng.sample(wild, self.rng.choice([0, 0, 1, 2]))
        return f"?{'&'.join(some)}" if some else ""


def statuses(description, path, method):
    """Return the status codes that the description allows."""
    operation = description["paths"].get(path, {}).get(method.lower())
    return {405} if operation is None else {int(status) for status in operation["responses"]}


@pytest.mark.parametrize("seed", [0])
def test_responses_match_the_description(tmp_path, seed):
    fuzzer = Fuzzer(seed)
    rng = fuzzer.rng
    with serving(tmp_path) as server:

        def ask(method, path, body=None, kind=None):
            headers = {} if kind is None else {"Content-Type": kind}
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            data = response.read()
            connection.close()
            return response.status, data

        description = json.loads(ask("GET", "/openapi.json")[1])
        paths, memory = list(description["paths"]), []
        for case in range(CASES):
            path = rng.choice([*paths, "/predict", "/learn", "/learn", "/predict"])
            usual = "POST" if path in ("/predict", "/learn") else "GET"
            method = usual if rng.random() < 0.95 else rng.choice(["PUT", "DELETE", "GET", "POST"])
            body = fuzzer.body() if usual == "POST" else None
            kind = rng.choice(KINDS) if usual == "POST" else None
            status, data = ask(method, path + fuzzer.query(path), body, kind)
            assert status in statuses(description, path, method), (method, path, kind, body, data)
            assert status < 500
            if case % max(CASES // 10, 1) == 0:
                memory.append(server.memory())
        assert memory[-1] < memory[len(memory) // 2] + (64 << 20), memory
        assert ask("GET", "/readyz")[0] == 200
