"""Dates and times become the same features from every kind of object."""

import math
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost import HullBoost, LinearSGD, Ridge
from spanboost.rows.feature_names import FeatureNames
from spanboost.rows.times import (
    FIRST_PARTS,
    PARTS,
    as_moment,
    expand_times,
    parse_time,
    time_features,
)

MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))


def features(value, parts=PARTS):
    return time_features(np.array([as_moment(value)], "datetime64[us]"), parts)[0].tolist()


def naive(moment):
    """Return the features by Python's datetime."""
    days = (moment - datetime(2020, 1, 1)) / timedelta(days=1)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    hours = (moment - midnight) / timedelta(hours=1)
    return [days, hours, moment.weekday(), moment.timetuple().tm_yday]


def naive_waves(days, hours, weekday, yearday):
    """Return the days, and the waves of the day, the week and the year."""
    angles = [2 * math.pi * turn for turn in (hours / 24, weekday / 7, yearday / 365.25)]
    return [days, *(wave(angle) for angle in angles for wave in (math.sin, math.cos))]


@given(MOMENTS)
def test_features_are_those_of_the_calendar(moment):
    assert features(moment, FIRST_PARTS) == pytest.approx(naive(moment), abs=1e-9)
    found = features(moment)
    assert found == pytest.approx(naive_waves(*naive(moment)), rel=6e-8, abs=1e-7)
    assert found == np.float32(found).tolist()  # as the readers of files round numbers


@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_every_object_of_the_same_time_gives_the_same_features(moment, offset):
    zone = timezone(timedelta(minutes=offset))
    same = [
        moment.replace(tzinfo=UTC),
        moment.replace(tzinfo=UTC).astimezone(zone),
        np.datetime64(moment),
        pd.Timestamp(moment),
        pd.Timestamp(moment, tz="UTC").tz_convert(zone),
    ]
    assert all(features(value) == features(moment) for value in same)
    texts = [moment.isoformat(), moment.isoformat(" "), same[1].isoformat()]
    assert all(parse_time(text) == np.datetime64(moment, "us") for text in texts)


def test_dates_begin_at_midnight():
    assert features(date(2020, 1, 3), FIRST_PARTS) == [2, 0, 4, 3]
    assert parse_time("2020-01-03") == parse_time("2020-01-03 00:00") == as_moment(date(2020, 1, 3))


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "20200103", "2020-02-30", "2020-1-3", "2020-01-03x", "2020-W01-1", "0000-01-01"),
        *("2020-01-03 25:00", "12:30", "2020-01", "2020-01-03 12:00 +01:00", "\u0662020-01-03"),
    ],
)
def test_other_texts_are_not_times(text):
    assert parse_time(text) is None


def test_missing_times_are_missing_numbers():
    assert np.isnan([features(value) for value in (pd.NaT, np.datetime64("NaT"))]).all()


def test_rows_without_times_are_not_copied():
    rows = [{"a": 1.0, "b": "x"}, {"a": None}]
    assert expand_times(rows, lambda name, text: None, PARTS) is rows


@given(st.lists(MOMENTS, min_size=1, max_size=5))
def test_dictionaries_are_read_alike_in_blocks_and_one_by_one(moments):
    rows = [{"t": moment, "x": float(k), "c": "ab"[k % 2]} for k, moment in enumerate(moments)]
    names = FeatureNames(None)
    matrix, new = names.read(rows)
    assert {*(f"t.{part}" for part in PARTS), "x"} <= new.keys()
    names.add(new)
    for one in (names.read(rows)[0], matrix):
        dense = np.zeros((len(rows), len(new)))
        for t, (first, last) in enumerate(zip(one.indptr, one.indptr[1:], strict=False)):
            dense[t, one.indices[first:last]] = one.data[first:last]
        hours = dense[:, new["t.hour_sin"]]
        assert hours.tolist() == [features(moment)[1] for moment in moments]


def test_models_learn_from_time_objects():
    rows = [{"t": datetime(2024, 1, 1) + timedelta(hours=k)} for k in range(200)]
    y = [row["t"].hour / 24 for row in rows]
    block, single = (HullBoost(LinearSGD(), n=2, label_range=(0, 1)) for _ in range(2))
    block.learn_many(rows, y)
    for row, label in zip(rows, y, strict=True):
        single.learn_one(row, label)
    assert block.predict_one(rows[3]) == single.predict_one(rows[3])
    assert block.predict_one(rows[20]) > block.predict_one(rows[3])


def test_a_trend_continues_in_the_next_year():
    """With the day of the year as a number, the forecasts after 1 January are off by months."""
    rng = np.random.default_rng(0)
    hours = 7 * np.arange(2000)
    rows = [
        {"t": datetime(2023, 1, 1) + timedelta(hours=int(hour)), "x": x}
        for hour, x in zip(hours, rng.normal(size=2000), strict=True)
    ]
    y = np.array([2 * row["x"] for row in rows]) + hours / 1000 + rng.normal(0, 0.1, 2000)
    model = HullBoost(Ridge(), n=1, label_range="auto")
    model.learn_many(rows[:1000], y[:1000])  # until October
    errors = model.predict_many(rows[1000:]) - y[1000:]
    assert np.mean(errors**2) < 0.1 * np.var(y[1000:])
