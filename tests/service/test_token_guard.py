"""Tokens: which are accepted, and what happens to an address that guesses."""

from base64 import b64encode

import pytest

from spanboost.errors import UsageError
from spanboost.service.http.server import check_tokens
from spanboost.service.http.token_guard import (
    MAX_ADDRESSES,
    MAX_FAILURES,
    WINDOW,
    Access,
    TokenGuard,
)

TOKENS = {"predict": "p" * 16, "learn": "l" * 16}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def bearer(token):
    return f"Bearer {token}".encode()


def ask(guard, token, address="10.0.0.1", scopes=("predict",)):
    return guard.check(address, bearer(token), scopes)


def guess(guard, address, times=MAX_FAILURES):
    return [ask(guard, f"guess {k}", address) for k in range(times)]


def test_only_the_tokens_of_the_scopes_are_accepted():
    guard = TokenGuard(TOKENS)
    assert ask(guard, TOKENS["predict"]) is Access.GRANTED
    assert ask(guard, TOKENS["learn"]) is Access.REFUSED
    assert ask(guard, TOKENS["learn"], scopes=("predict", "learn")) is Access.GRANTED
    assert guard.check("", b"", ("predict",)) is Access.REFUSED
    basic = b"Basic " + b64encode(f"anyone:{TOKENS['learn']}".encode())
    assert guard.check("", basic, ("learn",)) is Access.GRANTED


def test_an_address_that_guesses_cannot_tell_whether_a_token_is_right():
    clock = Clock()
    guard = TokenGuard(TOKENS, clock)
    assert guess(guard, "10.0.0.1") == [Access.REFUSED] * MAX_FAILURES
    assert ask(guard, "wrong") is Access.BRAKED
    assert ask(guard, TOKENS["predict"]) is Access.BRAKED
    assert ask(guard, TOKENS["predict"], "10.0.0.2") is Access.GRANTED
    clock.now += WINDOW + 1
    assert ask(guard, TOKENS["predict"]) is Access.GRANTED


def test_an_address_that_had_a_right_token_is_still_served():
    guard = TokenGuard(TOKENS, Clock())
    assert ask(guard, TOKENS["predict"]) is Access.GRANTED
    guess(guard, "10.0.0.1")
    assert ask(guard, "wrong") is Access.BRAKED
    assert ask(guard, TOKENS["predict"]) is Access.GRANTED


def test_requests_without_a_token_or_with_that_of_another_path_are_not_guesses():
    guard = TokenGuard(TOKENS, Clock())
    for _ in range(2 * MAX_FAILURES):
        assert guard.check("10.0.0.1", b"", ("predict",)) is Access.REFUSED
        assert ask(guard, TOKENS["learn"]) is Access.REFUSED
    assert ask(guard, TOKENS["predict"]) is Access.GRANTED


def test_one_network_of_ipv6_counts_as_one_address():
    guard = TokenGuard(TOKENS, Clock())
    for k in range(MAX_FAILURES):
        ask(guard, "wrong", f"2001:db8::{k:x}")
    assert ask(guard, "wrong", "2001:db8::ffff") is Access.BRAKED
    assert ask(guard, "wrong", "2001:db8:0:1::1") is Access.REFUSED


def test_only_some_addresses_are_remembered():
    guard = TokenGuard(TOKENS, Clock())
    guess(guard, "first")
    for k in range(MAX_ADDRESSES):
        ask(guard, "wrong", f"address {k}")
    assert ask(guard, "wrong", "first") is Access.REFUSED  # forgotten


def test_short_tokens_are_refused():
    check_tokens(TOKENS)
    with pytest.raises(UsageError, match="SPANBOOST_LEARN_TOKEN has 15 characters"):
        check_tokens(TOKENS | {"learn": "l" * 15})
