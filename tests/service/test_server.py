"""The server without the names of uvicorn that its documentation does not promise."""

import pytest

from spanboost.service import server


def test_this_uvicorn_has_every_name(capsys):
    assert server.choose_protocol() == {"http": server.Protocol}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", server.METHODS)
def test_without_a_name_uvicorn_limits_connections_itself(monkeypatch, capsys, name):
    monkeypatch.delattr(server.httptools_impl.HttpToolsProtocol, name)
    options = server.choose_protocol()
    assert options == {"http": "httptools", "limit_concurrency": server.CONNECTIONS}
    assert f"does not have {name}; slow clients" in capsys.readouterr().err


@pytest.mark.parametrize("names", ["ATTRIBUTES", "CYCLE_ATTRIBUTES"])
def test_attributes_of_connections_are_looked_for(monkeypatch, capsys, names):
    monkeypatch.setattr(server, names, (*getattr(server, names), "renamed"))
    assert server.choose_protocol()["http"] == "httptools"
    assert "does not have renamed; slow clients" in capsys.readouterr().err
