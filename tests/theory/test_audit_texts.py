"""Certificates and audits as people see them."""

from xml.etree import ElementTree

import numpy as np

from spanboost import HullBoost, LinearBall, LinearSGD, SpanBoost
from spanboost.theory.certificate import CONSTANT, Witness
from spanboost.theory.measured_pass import audit
from spanboost.theory.regret import audit_span

X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
Y = X @ [0.5, -0.2]


def parse(shown):
    root = ElementTree.fromstring(shown._repr_html_())
    tables = [[[cell.text or "" for cell in row] for row in one] for one in root.iter("table")]
    return root.find("strong").text, tables


def test_a_certificate_shows_all_comparators_and_what_is_missing():
    model = SpanBoost(LinearSGD(), n=2, label_range=(-1, 1))
    witness = Witness(model)
    answers = model.learn_many(X, Y)
    witness.add(X, Y, answers=answers)
    found = witness.certificate(float(((answers - Y) ** 2).sum()))
    first = found.comparisons[0]
    assert repr(found) == (
        f"<Certificate: loss {first.loss:.4g}, regret {first.regret:.4g} against "
        f"{first.comparator}, measured bound {first.measured.total:.4g}>"
    )
    title, (comparisons, notes) = parse(found)
    assert title == f"certificate: loss {first.loss:.6g}"
    assert [row[0] for row in comparisons[1:]] == [one.comparator for one in found.comparisons]
    assert comparisons[-1][0] == CONSTANT
    assert comparisons[1][2:] == [f"{first.regret:.6g}", f"{first.measured.total:.6g}", "n/a"]
    assert notes == [["no bound for every stream", found.unproved]]
    empty = found._replace(comparisons=[])
    assert repr(empty) == "<Certificate: nothing to compare with>"
    assert parse(empty)[0] == "certificate: loss n/a"


def test_a_measured_audit_adds_up():
    found = audit(HullBoost(LinearSGD(), n=2, label_range=(-1, 1)), X, Y, np.zeros(200))
    assert repr(found) == (
        f"<MeasuredAudit: regret {found.regret:z.4g}, bound {found.bound.total:z.4g}>"
    )
    terms = ", ".join(f"{name} {value:z.4g}" for name, value in found.bound.terms.items())
    assert repr(found.bound) == f"<PartBound: {found.bound.total:z.4g} ({terms})>"
    title, (rows,) = parse(found)
    assert title == f"regret {found.regret:z.6g}"
    assert dict(rows)["bound"] == f"{found.bound.total:z.6g}"
    assert list(dict(rows)) == ["loss", "loss of the comparator", *found.bound.terms, "bound"]


def test_an_audit_shows_both_bounds():
    booster = SpanBoost(LinearBall(x_norm=2.0), n=2, label_range=(-1, 1), feedback="linear")
    found = audit_span(booster, X, Y, f=Y, f_norm=1.0)
    assert repr(found) == (
        f"<Audit: regret {found.regret:z.4g}, bound {found.bound.total:z.4g}, measured bound "
        f"{found.measured.total:z.4g}>"
    )
    _, (rows,) = parse(found)
    assert dict(rows)["bound: sigma"] == f"{found.bound.sigma:z.6g}"
    assert dict(rows)["measured: copies"] == f"{found.measured.terms['copies']:z.6g}"
