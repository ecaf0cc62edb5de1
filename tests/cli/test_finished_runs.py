"""`train --resume` of a finished run compares the model with the data."""

import pytest
from streams import put

OPTIONS = ("--learner", "linear", "-n", "2", "--checkpoint-every", "10")
ROWS = [f"{t % 7},{'abc'[t % 3]},{t % 11}" for t in range(40)]


def table(folder, rows, name="rows.csv"):
    return put(folder, name, "\n".join(["size,city,label", *rows, ""]).encode())


@pytest.fixture
def finished(shell, tmp_path):
    """A function that trains a model and returns its file."""

    def train(rows, *options):
        output = tmp_path / "model.sb"
        shell("train", table(tmp_path, rows), "-o", output, *OPTIONS, *options)
        return output

    return train


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ((), str),
        (("--loss", "logistic"), lambda t: "no" if t % 2 else "yes"),
        (("--loss", "softmax"), lambda t: "xyz"[t % 3]),
        (("--loss", "poisson"), str),
        (("--label-range", "0,50"), str),
        (("--weight", "size"), str),
        (("--intervals",), str),
    ],
)
def test_there_is_nothing_to_do_for_the_same_data(options, label, finished, shell, tmp_path):
    rows = [f"{row.rpartition(',')[0]},{label(t)}" for t, row in enumerate(ROWS)]
    output = finished(rows, *options)
    before = output.read_bytes()
    again = table(tmp_path, rows, "copy.csv")
    printed = shell("train", again, "-o", output, *OPTIONS, *options, "--resume")
    assert printed.err == f"{output} is complete; nothing to do\n"
    assert output.read_bytes() == before


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ROWS, "1,a,3"], "has learned 40 rows, but DATA has 41"),
        (ROWS[:-1], "has learned 40 rows, but DATA has 39"),
        ([*ROWS[:-1], "1,a,12"], "was trained on other data"),
        ([*ROWS[:-1], "1,d,3"], "was trained on other data"),
    ],
)
def test_other_data_are_refused(rows, message, finished, shell, tmp_path):
    output = finished(ROWS)
    before = output.read_bytes()
    words = ("train", table(tmp_path, rows), "-o", output, *OPTIONS)
    printed = shell(*words, "--resume", status=2)
    assert printed.err == f"spanboost: {output} {message}; leave out --resume to start again\n"
    assert output.read_bytes() == before
    shell(*words)
    assert "nothing to do" in shell(*words, "--resume").err


def test_bad_rows_that_were_left_out_do_not_count(finished, shell, tmp_path):
    rows = [*ROWS, "1,a,oops"]
    output = finished(rows, "--on-error", "skip")
    words = ("train", table(tmp_path, rows), "-o", output, *OPTIONS, "--on-error", "skip")
    assert "nothing to do" in shell(*words, "--resume").err
