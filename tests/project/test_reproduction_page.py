"""The page on the paper's experiments: its tables come from the results that are stored with it."""

import json
import re

import pytest
import reproduction_page as website

from spanboost.paper.cells import cell_from_json, feedbacks_of
from spanboost.paper.datasets import SETS
from spanboost.paper.published import LEARNERS
from spanboost.paper.reproduce import facts_from_json
from spanboost.paper.row_order import LIMIT
from spanboost.paper.summary import (
    distance,
    headline_lines,
    log_ratio,
    of_learner,
    results_of,
    with_same_coding,
)


@pytest.fixture(scope="module")
def state():
    return json.loads(website.STORED.read_text())


@pytest.fixture(scope="module")
def facts(state):
    return {name: facts_from_json(one) for name, one in state["data"].items()}


@pytest.fixture(scope="module")
def lines(state, facts):
    cells = map(cell_from_json, state["cells"])
    return headline_lines(cells, {name: one.order for name, one in facts.items()})


def test_the_tables_are_those_of_the_stored_results(state):
    page = website.PAGE.read_text()
    found = website.stored_tables(state)
    assert website.fill(page, found) == page
    shown = re.findall(r"<!-- table ([\w-]+) -->", page)
    assert sorted(shown) == sorted(found), "tables that are missing on the page, or unknown"


def test_all_cells_of_the_headline_are_stored(lines, facts):
    assert facts.keys() == {name for name, one in SETS.items() if one.content is not None}
    assert len(facts) == 11
    assert all(one.published for one in facts.values())
    assert {(line.set, line.learner) for line in lines} == {
        (name, learner) for name in facts for learner in LEARNERS
    }
    for line in lines:
        assert set(line.cells) == set(feedbacks_of(line.learner))


def test_the_order_follows_the_rule(facts):
    for one in facts.values():
        assert (one.order == "shuffle0") == (one.gap > LIMIT)


def test_stumps_alone_are_the_papers(lines):
    assert log_ratio(with_same_coding(of_learner(lines, "stumps"))) <= 0.02


def test_gains_are_closer_to_the_paper_than_those_of_other_stumps(lines):
    """With stumps ranked by advantage alone and boosted, the distance was 17 points."""
    stumps = of_learner(lines, "stumps")
    assert min(distance(stumps, result) for result in results_of("stumps")) < 17


def test_runs_are_merged():
    one = {"set": "a", "order": "file", "learner": "linear", "feedback": "greedy", "seconds": 3}
    model = {"rate": 0.5, "second_half": 0.123456789, "against_n": [1.0], "curve": [2.0]}
    cell = one | {"models": {"span": model}}
    runs = [
        {"grid": {"copies": 4}, "data": {"a": 1}, "cells": [cell]},
        {"grid": {"copies": 4}, "data": {"b": 2}, "cells": [cell, cell | {"order": "shuffle0"}]},
    ]
    merged = website.merge(runs)
    assert merged["data"] == {"a": 1, "b": 2}
    assert [each["order"] for each in merged["cells"]] == ["file", "shuffle0"]
    expected = {"rate": 0.5, "second_half": 0.1234568, "against_n": [], "curve": []}
    assert merged["cells"][0]["models"]["span"] == expected
