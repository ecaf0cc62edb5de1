"""The options of `spanboost serve` set the limits of the service."""

import pytest

from spanboost.cli.parser import parser
from spanboost.service.limits import RequestLimits, StateLimits, limit_options, limit_values

CHANGED = [
    ("--pending", "7", StateLimits(pending_rows=7)),
    ("--pending-bytes", "2", StateLimits(pending_bytes=2 << 20)),
    ("--pending-days", "0.5", StateLimits(pending_seconds=43_200.0)),
    ("--ids", "7", StateLimits(remembered_ids=7)),
    ("--snapshot-every", "7", StateLimits(snapshot_rows=7)),
    ("--keep-days", "0.5", StateLimits(keep_seconds=43_200.0)),
    ("--keep-rows", "7", StateLimits(keep_rows=7)),
    ("--max-body", "2", RequestLimits(body_bytes=2 << 20)),
    ("--max-rows", "7", RequestLimits(rows=7)),
    ("--max-width", "7", RequestLimits(row_keys=7)),
    ("--max-open", "7", RequestLimits(open_requests=7)),
    ("--max-waiting", "7", RequestLimits(waiting_rows=7)),
    ("--max-memory", "700", RequestLimits(memory_bytes=700 << 20)),
    ("--max-features", "7", RequestLimits(features=7)),
    ("--max-classes", "7", RequestLimits(classes=7)),
]


def parse_limits(cls, *options):
    args = parser().parse_args(["serve", "--dir", "state", *options])
    return cls(**limit_values(cls, vars(args)))


@pytest.mark.parametrize("cls", [StateLimits, RequestLimits])
def test_options_have_the_defaults_of_the_limits(cls):
    assert parse_limits(cls) == cls()


@pytest.mark.parametrize(("flag", "value", "expected"), CHANGED)
def test_an_option_sets_one_limit(flag, value, expected):
    assert parse_limits(type(expected), flag, value) == expected


def test_every_option_is_tested():
    flags = [option.flag for cls in (StateLimits, RequestLimits) for option in limit_options(cls)]
    assert flags == [flag for flag, _, _ in CHANGED]


@pytest.mark.parametrize("flag", [flag for flag, _, _ in CHANGED])
def test_limits_are_positive(flag, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["serve", "--dir", "state", flag, "0"])
    assert flag in capsys.readouterr().err
