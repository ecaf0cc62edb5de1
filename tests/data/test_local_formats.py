"""Numbers with commas and dates that are not ISO 8601."""

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanboost.data.local_formats import (
    comma_advice,
    date_order,
    describe_digit_dates,
    describe_local_format,
    describe_order,
    describe_seconds,
    describe_signs,
    is_local_date,
    parse_date,
    split_sign,
)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("393,35", "has a decimal comma; write 393.35"),
        (" -0,123", "has a decimal comma; write -0.123"),
        ("1.234,5", "has a decimal comma; write 1234.5"),
        ("1,234", "has a comma; if it separates thousands, write 1234; if not, write 1.234"),
        ("1234,567", "has a decimal comma; write 1234.567"),
        ("1,2,3", None),
        ("12.34,5", None),
        (",5", None),
        ("a,5", None),
        ("5", None),
    ],
)
def test_advice_for_numbers_with_commas(text, advice):
    assert comma_advice(text) == advice


@pytest.mark.parametrize(
    "text",
    ["01/31/2024", "31.01.2024", "1/2/24", "31-01-2024 09:30", "2024/01/31", "1/31/2024, 9:30 PM"],
)
def test_local_dates(text):
    assert is_local_date(text)


@pytest.mark.parametrize(
    "text", ["2024-01-31", "10.0.0.1", "1.2.3", "32.13.2024", "1/2-2024", "12/24", "x 1/2/2024"]
)
def test_other_texts_are_not_local_dates(text):
    assert not is_local_date(text)


def test_notes_need_half_of_the_values():
    assert describe_local_format("a", {"1,5": 2, "x": 3}) is None
    assert "have a decimal comma" in describe_local_format("a", {"1,5": 3, "x": 3})
    assert "'1,234' have a comma" in describe_local_format("a", {"1,234": 3, "x": 3})
    assert "'$1,234' have a comma" in describe_local_format("a", {"$1,234": 3, "x": 3})
    assert describe_local_format("a", {"1/2/2024": 2, "x": 3}) is None
    assert "may have the day or the month first" in describe_local_format(
        "a", {"1/2/2024": 3, "x": 3}
    )
    assert describe_local_format("a", {}) is None


def test_dates_of_digits_get_a_note():
    assert describe_digit_dates("a", ["20240131", "19991201"]) == (
        "column 'a' is read as numbers; if 20240131 is a date, write it as 2024-01-31"
    )
    for texts in (["20240131"], ["20240131", "20241301"], ["20240131", "7"], []):
        assert describe_digit_dates("a", texts) is None


FORMS = (
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y, %H:%M:%S",
    "%d-%b-%Y",
    "%d %b %Y %H:%M",
    "%Y-%m-%d",
)


@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)), st.sampled_from(FORMS))
def test_dates_with_a_clear_order_are_read_as_strptime_reads_them(moment, form):
    text = moment.strftime(form)
    assert parse_date(text) == np.datetime64(datetime.strptime(text, form), "us")


@pytest.mark.parametrize(
    "text",
    [
        "1/2/2024",
        "31.02.2024",
        "1.2.24",
        "13.13.2024",
        "1.2.3",
        "1 jan-2024",
        "1 Foo 2024",
        "",
        "5",
    ],
)
def test_other_texts_are_not_dates(text):
    assert parse_date(text) is None


def test_the_order_of_days_and_months_is_noted():
    assert describe_order(["2024-01-02", "1.2.2024"]) == ", the day first, as in '1.2.2024'"
    assert describe_order(["2024-01-02", "1 Jan 2024"]) == ""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("$5", ("5", "$")),
        ("-$1,200.50", ("-1,200.50", "$")),
        ("3,50\u00a0€", ("3,50", "€")),
        ("-3.5 %", ("-3.5", "%")),
        ("5", ("5", "")),
        ("%", ("%", "")),
        ("5%%", ("5%%", "")),
        ("$5%", ("$5%", "")),
    ],
)
def test_signs_are_split_off(text, parts):
    assert split_sign(text) == parts


def test_notes_name_all_signs():
    note = describe_signs("a", {"$5": 1, "6 €": 1, "7%": 2, "8": 1})
    assert note == (
        "column 'a': the sign of the currency in numbers like '$5' and in numbers like '6 €' is "
        "left out; 12% is read as 0.12; 3 of 5 values have no % and are not divided by 100"
    )
    assert describe_signs("a", {"7%": 2}) == "column 'a': 12% is read as 0.12"
    assert describe_signs("a", {"5": 1, "x": 1}) is None


SLASHED = (
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%m-%d-%Y %H:%M:%S",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %I:%M:%S%p",
)


@given(st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)), st.sampled_from(SLASHED))
def test_dates_with_a_known_order_are_read_as_strptime_reads_them(moment, form):
    for order, one in [("month", form), ("day", form.replace("%m/%d", "%d/%m"))]:
        if order == "day" and one == form:
            continue
        text = moment.strftime(one)
        assert parse_date(text, order) == np.datetime64(datetime.strptime(text, one), "us")
        assert parse_date(text) is None


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["01/02/2025", "01/13/2025"], "month"),
        (["13/01/2025", "01/02/2025"], "day"),
        (["1-31-2025 3:05 PM"], "month"),
        (["01/02/2025"], None),
        (["13/01/2025", "01/13/2025"], None),
        (["31.01.2025", "2025-01-31", "01/31/25", "x"], None),
        ([], None),
    ],
)
def test_dates_that_exclude_one_order_have_the_other(texts, order):
    assert date_order(texts) == order


@pytest.mark.parametrize("text", ["13/13/2025", "02/30/2025", "1/2/2025 13:00 PM", "1/2/2025 PM"])
def test_impossible_dates_with_slashes(text):
    assert parse_date(text, "month") is None


@pytest.mark.parametrize(
    ("name", "numbers", "unit"),
    [
        ("x", [1706749200000, 1706749201000], "milliseconds"),
        ("created_at", [1706749200123.0, 1706749201000.0], "milliseconds"),
        ("Date", [1706749200, 1706749260], "seconds"),
        ("price", [1706749200, 1706749260], None),
        ("x", [1706749200123, 1706749201000], None),
        ("x", [1706749200000], None),
        ("day", [1706749200.5, 1706749260], None),
        ("day", [20240131, 20240201], None),
        ("day", [], None),
    ],
)
def test_seconds_since_1970_get_a_note(name, numbers, unit):
    note = describe_seconds(name, numbers)
    assert (note is None) == (unit is None)
    if note is not None:
        assert f"is a time, in {unit} since 1970, write it as 2024-02-01 01:00:00" in note
