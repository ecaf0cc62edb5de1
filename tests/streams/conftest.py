"""Fixtures of the tests of streams."""

import pytest
from brokers import mock_kafka, redis_server


@pytest.fixture(scope="module")
def kafka():
    with mock_kafka() as broker:
        yield broker


@pytest.fixture(scope="module")
def redis():
    with redis_server() as broker:
        yield broker


@pytest.fixture(params=["kafka", "redis"])
def broker(request):
    return request.getfixturevalue(request.param)
