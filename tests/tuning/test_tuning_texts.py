"""The result of tuning as people see it."""

from xml.etree import ElementTree

import numpy as np

from spanboost import LinearSGD, tune

X = np.random.default_rng(0).uniform(-1, 1, (200, 2))


def tuned(grid, n=3):
    return tune(X, X[:, 0], learner=LinearSGD(), grid=grid, booster="hull", n=n)


def test_the_text_names_the_best_configuration():
    found = tuned({"rate": [0.1, 0.5]})
    best = found.best()
    assert repr(found) == (
        f"<TuningResult: 2 configurations; best: rate {best.settings['rate']}, {best.n} "
        f"{'copy' if best.n == 1 else 'copies'}, loss {best.loss_first:.4g} on the first part, "
        f"{best.loss_rest:.4g} on the rest>"
    )


def test_a_grid_of_one_configuration_has_no_varied_parameters():
    assert "; best: 1 copy, " in repr(tuned({"rate": [0.5]}, n=1))


def test_without_a_finite_loss_there_is_no_best():
    found = tuned({"rate": [0.5]})
    found.loss_first[:] = np.nan
    assert repr(found) == "<TuningResult: 1 configurations, none with a finite loss>"
    found._repr_html_()


def test_the_table_lists_the_best_configurations_first():
    found = tuned({"rate": [0.01 * k for k in range(1, 16)]})
    root = ElementTree.fromstring(found._repr_html_())
    head, *rows = [[cell.text or "" for cell in row] for row in root.iter("tr")]
    assert head == ["rate", "copies", "loss on the first part", "loss on the rest"]
    assert len(rows) == 14
    assert root.find("strong").text.endswith("; the best 14")
    best = found.best()
    assert rows[0] == [
        str(best.settings["rate"]),
        str(best.n),
        f"{best.loss_first:.6g}",
        f"{best.loss_rest:.6g}",
    ]


def test_the_result_plots_itself(tmp_path):
    axes = tuned({"rate": [0.1, 0.5]}).plot(tmp_path / "tuned.png")
    assert [one.get_xlabel() for one in axes] == ["copies n", "learning rate"]
    assert (tmp_path / "tuned.png").stat().st_size > 0
