"""The server without the names of uvicorn that its documentation does not promise."""

import resource

import pytest

from spanboost.service.http import server


def test_this_uvicorn_has_every_name(caplog):
    assert server.choose_protocol() == {"http": server.Protocol}
    assert not caplog.messages


@pytest.mark.parametrize("name", server.METHODS)
def test_without_a_name_uvicorn_limits_connections_itself(monkeypatch, caplog, name):
    monkeypatch.delattr(server.httptools_impl.HttpToolsProtocol, name)
    options = server.choose_protocol()
    assert options == {"http": "httptools", "limit_concurrency": server.CONNECTIONS}
    assert f"does not have {name}; slow clients" in caplog.text


@pytest.mark.parametrize("names", ["ATTRIBUTES", "CYCLE_ATTRIBUTES"])
def test_attributes_of_connections_are_looked_for(monkeypatch, caplog, names):
    monkeypatch.setattr(server, names, (*getattr(server, names), "renamed"))
    assert server.choose_protocol()["http"] == "httptools"
    assert "does not have renamed; slow clients" in caplog.text


@pytest.mark.parametrize(
    ("before", "most", "after", "connections"),
    [
        (1024, 1 << 20, server.MAX_FILES, server.CONNECTIONS),
        (1024, -1, server.MAX_FILES, server.CONNECTIONS),
        (1024, 1024, 1024, 1024 - server.OWN_FILES),
        (1 << 20, 1 << 20, 1 << 20, server.CONNECTIONS),
        (100, 100, 100, 1),
    ],
)
def test_connections_leave_files_for_the_service(monkeypatch, before, most, after, connections):
    limits = [(before, most)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.append(new))
    server.raise_file_limit()
    assert limits[-1] == (after, most)
    assert server.max_connections() == connections
