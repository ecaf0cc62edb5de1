"""Rows of clients: values that JSON does not have become values that the service reads."""

import asyncio
import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest
from leaders import leading

from spanboost.checks import plain_row
from spanboost.client import AsyncClient, Client, ServiceError
from spanboost.rows.times import is_time, parse_time

VALUES = {
    "datetime": dt.datetime(2026, 1, 31, 12, 30),
    "zone": dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    "date": dt.date(2026, 1, 31),
    "pandas": pd.Timestamp("2026-01-31 12:30:00.5"),
    "numpy": np.datetime64("2026-01-31T12:30"),
    "nanoseconds": np.datetime64("2026-01-31T12:30:00.5", "us"),
}


@pytest.mark.parametrize("name", VALUES)
def test_times_become_text_that_the_service_reads(name):
    assert is_time(VALUES[name])
    (text,) = plain_row({"at": VALUES[name]}).values()
    assert isinstance(text, str)
    assert parse_time(text) is not None


def test_numbers_and_missing_values():
    row = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": "x", "e": None}
    missing = {"f": float("nan"), "g": pd.NaT, "h": np.datetime64("NaT"), "i": np.float64("nan")}
    found = plain_row(row | missing)
    assert found == {"a": 0.5, "b": 3, "c": True, "d": "x", "e": None} | dict.fromkeys(missing)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("row", [[{"size": 2}], "x", 7, None])
def test_a_row_that_is_not_a_dictionary_is_refused(row):
    with Client("http://127.0.0.1:1") as client:
        for call in (client.predict, lambda one: client.learn([one])):
            with pytest.raises(TypeError, match=r"a row must be a dictionary .*predict_many"):
                call(row)


def test_labels_that_are_not_a_dictionary_are_refused():
    refused = pytest.raises(TypeError, match=r"labels must be a dictionary of ids and labels \(got")
    with Client("http://127.0.0.1:1") as client, refused:
        client.label_many([("a", 1.0), ("b", 2.0)])


def test_a_row_of_pandas_is_sent():
    assert plain_row(pd.Series({"size": 2, "city": "Ulm"})) == {"size": 2, "city": "Ulm"}


def test_clients_name_the_key_of_labels(tmp_path):
    with leading(tmp_path, options=("--label", "rings")) as server:
        address = str(server.base_url)
        with Client(address) as client:
            id = client.predict({"size": 2}).id
            with pytest.raises(ServiceError, match="the label is missing: no key 'rings'"):
                client.label(id, 9)
        with Client(address, label="rings") as client:
            assert client.label(id, 9).learned == 1


def test_clients_send_times(tmp_path):
    rows = [{"at": VALUES["pandas"], "size": np.float64(2), "label": np.float32(1)}] * 3
    with leading(tmp_path) as server:
        with Client(str(server.base_url)) as client:
            assert client.learn(rows, wait=True).learned == 3
            (one,) = client.predict_many(rows[:1], keep=False)

        async def predict():
            async with AsyncClient(str(server.base_url)) as client:
                return await client.predict(rows[0], keep=False)

        assert asyncio.run(predict()).value == one.value
        names = server.engine.state.model.encoder.names.columns
    assert any(name.startswith("at") and name != "at" for name in names)  # time features
    assert rows[0]["at"] is VALUES["pandas"]
