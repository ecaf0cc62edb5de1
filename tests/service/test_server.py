"""The server without the names of uvicorn that its documentation does not promise."""

import pytest

from spanboost.service import server


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
