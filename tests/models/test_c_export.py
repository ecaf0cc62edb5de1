"""Exported C files predict the same bits as the model."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_c import COMPILER, WARNINGS, CompiledModel, needs_compiler
from hypothesis import given, settings
from hypothesis import strategies as st
from predicting import (
    COMPILED,
    KINDS,
    LEARNERS,
    LOSS_OF,
    LOSSES,
    MODELS,
    SMALL_TREES,
    labels_of,
    rows_of,
    span,
    trained,
)
from scipy_free import Csr
from test_compact import holds_rows

from spanboost import (
    LinearBall,
    LinearSGD,
    Rows,
    SpanBoost,
    Stumps,
    Symmetrised,
    Trees,
    export,
    load,
)
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError
from spanboost.losses import Softmax
from spanboost.models.exporting.c_literals import number, table, text
from spanboost.models.predictions import probabilities
from spanboost.rows.times import FIRST_PARTS, PARTS, time_features

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
# the exponential function of NumPy and of the C library may differ in the last bit
EXACT = {"squared", "absolute"}


def same(found, expected, loss="squared"):
    if loss in EXACT:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", MODELS)
def test_every_model_on_every_kind_of_rows(case, kind, tmp_path):
    if case == "committee" and kind != "dense":
        pytest.skip("the members have learned dense rows")
    with plain():
        model = trained(MODELS[case](), kind, "squared")
        rows = rows_of(kind, seed=1)
        same(CompiledModel(model, tmp_path).predict_many(rows), model.predict_many(rows))


@needs_compiler
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* are not exported")
@pytest.mark.parametrize("case", COMPILED)
def test_ensembles(case, tmp_path):
    loss = LOSS_OF.get(case, "squared")
    model = trained(COMPILED[case](), "codes", loss, T=400)
    rows = rows_of("codes", T=200, seed=1)
    found = CompiledModel(model, tmp_path).predict_many(rows)
    same(found, model.predict_many(rows), loss)


@needs_compiler
@settings(max_examples=20)
@given(
    learner=st.sampled_from(sorted(LEARNERS)),
    loss=st.sampled_from(LOSSES),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 1000),
)
def test_random_models(tmp_path_factory, learner, loss, kind, seed):
    folder = tmp_path_factory.mktemp("random")
    with plain():
        model = trained(span(learner, loss), kind, loss, T=40, seed=seed)
        rows = rows_of(kind, seed=seed + 1)
        same(CompiledModel(model, folder).predict_many(rows), model.predict_many(rows), loss)


@needs_compiler
@pytest.mark.parametrize("bits", [None, 3])
@pytest.mark.parametrize("learner", [Trees, Stumps])
def test_sparse_rows(bits, learner, tmp_path):
    settings = SMALL_TREES if learner is Trees else {}
    X, y = np.nan_to_num(rows_of("dense")), labels_of("squared")
    with plain():
        model = SpanBoost(learner(**settings, bits=bits), 3, label_range="auto")
        model.learn_many(Csr(X), y)
        compiled = CompiledModel(model, tmp_path)
        for x, expected in zip(X, model.predict_many(Csr(X)), strict=True):
            columns = np.flatnonzero(x)
            np.testing.assert_array_equal(compiled._sparse(columns, x[columns]), expected)


@needs_compiler
def test_a_table_with_categories_and_times(shell, tmp_path):
    rng = np.random.default_rng(0)
    cities = ["Ulm", 'the "Hague"', "Åbo", "what??/", "model_NAME_"]
    days = rng.integers(0, 2000, 300)
    lines = [
        f"{rng.random():.4f},{cities[k % 5]!r:s},{np.datetime64('2019-01-01') + d},{k % 5 + d % 7}"
        for k, d in enumerate(days)
    ]
    csv = "\n".join(["size,city,day,label", *lines]).replace("'", "")
    (tmp_path / "data.csv").write_text(csv.replace('the "Hague"', '"the ""Hague"""') + "\n")
    path = tmp_path / "trees.sb"
    options = ("--learner", "trees", "-n", "4", "--quiet")
    shell("train", tmp_path / "data.csv", "-o", path, *options)
    shell("export", path, "--to", "c", "-o", tmp_path / "houses.c", "--name", "houses")
    model = load(path)
    compiled = CompiledModel(model, tmp_path, "houses")
    assert [compiled.code(0, city) for city in cities] == [0, 1, 2, 3, 4]
    assert [compiled.code(*one) for one in ((0, "Bonn"), (0, ""), (0, None), (1, "Ulm"))] == [
        -1
    ] * 4
    moment = np.datetime64("2024-02-29T13:30", "us")
    numbers = np.full(7, np.nan)
    compiled.function("time", None)(
        np.ctypeslib.ctypes.c_int64(moment.astype(int)),
        np.ctypeslib.ctypes.c_void_p(numbers.ctypes.data),
    )
    row = {"size": 0.5, "city": "Åbo", "day": "2024-02-29T13:30"}
    found = compiled._dense([0.5, *numbers], [compiled.code(0, "Åbo")])
    np.testing.assert_array_equal(found, model.predict_one(row))


@needs_compiler
@pytest.mark.filterwarnings("ignore:.* are not exported")
@pytest.mark.parametrize("options", [["--intervals"], ["--loss", "softmax", "--sets"]])
def test_models_with_intervals_or_sets_have_names_too(options, shell, tmp_path):
    lines = ["size,city,day,label"]
    lines += [
        f"{k % 9},{['Ulm', 'Bonn'][k % 2]},2024-01-{1 + k % 28:02},{k % 2}" for k in range(80)
    ]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    path = tmp_path / "model.sb"
    command = ("train", tmp_path / "data.csv", "-o", path, "--learner", "linear", "-n", "2")
    shell(*command, *options, "--quiet")
    model = load(path)
    compiled = CompiledModel(model, tmp_path)
    codes = [compiled.code(0, city) for city in ("Ulm", "Bonn", "Rome")]
    assert codes == [0, 1, -1]
    numbers = np.full(7, np.nan)
    pointer = np.ctypeslib.ctypes.c_void_p(numbers.ctypes.data)
    moment = np.datetime64("2024-01-05", "us").astype(int)
    compiled.function("time", None)(np.ctypeslib.ctypes.c_int64(moment), pointer)
    expected = model.predict_one({"size": 3.0, "city": "Bonn", "day": "2024-01-05"})
    same(compiled._dense([3.0, *numbers], codes[1:2]), expected, loss="any")
    source = compiled.source.read_text()
    assert all(f'"{name}"' in source for name in ("size", "day.days", "city"))
    assert ('model_classes[2] = {"0", "1"}' in source) == ("--sets" in options)


@needs_compiler
@pytest.mark.parametrize("bits", [None, 5])
def test_dictionaries_with_times_and_hashed_names(bits, tmp_path):
    rng, rows = np.random.default_rng(0), []
    for k, size in enumerate(rng.normal(size=60).tolist()):
        day = f"2024-{1 + k % 12:02}-{1 + k % 28:02}T10:30:00"
        rows.append({"sold": day, "size": size, "city": f"c{k % 3}", "rooms": k % 4})
    with plain():
        model = SpanBoost(LinearSGD(bits=bits), 2, label_range="auto")
        model.learn_many(rows, [row["rooms"] + row["size"] for row in rows])
        expected = model.predict_many(rows)
        compiled = CompiledModel(model, tmp_path)
    found = compiled.predict_many([_with_time_features(compiled, row) for row in rows])
    np.testing.assert_array_equal(found, expected)
    assert 'the time "sold" has the keys "sold.days"' in compiled.source.read_text()


def _with_time_features(compiled, row):
    """Return a dictionary in which the time is the numbers that the file computes."""
    numbers = np.full(len(PARTS), np.nan)
    moment = np.datetime64(row["sold"], "us").astype(int)
    pointer = np.ctypeslib.ctypes.c_void_p(numbers.ctypes.data)
    compiled.function("time", None)(np.ctypeslib.ctypes.c_int64(moment), pointer)
    times = dict(zip([f"sold.{part}" for part in PARTS], numbers.tolist(), strict=True))
    return {key: value for key, value in row.items() if key != "sold"} | times


def test_the_columns_of_files_without_names_are_explained(shell, tmp_path):
    for name, line, said in (
        ("a.svm", "1 1:2 3:4\n", "its index in svmlight files"),
        ("a.vw", "1 | a:2 b\n", "its hash in Vowpal Wabbit"),
    ):
        (tmp_path / name).write_text(line * 30)
        model = tmp_path / "model.sb"
        shell("train", tmp_path / name, "-o", model, "--learner", "linear", "-n", "1", "--quiet")
        shell("export", model, "--to", "c", "-o", tmp_path / "model.c")
        assert said in (tmp_path / "model.c").read_text()


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_single_copy(learner, kind, tmp_path):
    """The compiler sees through all loops, and warns about what may be uninitialized."""
    with plain():
        model = trained(span(learner, n=1), kind, "squared")
        rows = rows_of(kind, seed=1)
        same(CompiledModel(model, tmp_path).predict_many(rows), model.predict_many(rows))


@needs_compiler
@pytest.mark.parametrize("classes", [2, 4, 7])
@pytest.mark.parametrize("learner", ["linear", "linear64", "trees", "network", "ridge"])
def test_projections_of_many_outputs(learner, classes, tmp_path):
    """The squares of the outputs are added in the same order."""
    X = rows_of("dense")
    with plain():
        model = SpanBoost(LEARNERS[learner], 3, loss=Softmax(classes), D=0.3, B=0.3)
        model.learn_many(X, np.arange(len(X)) * 7 % classes)
        found = CompiledModel(model, tmp_path).predict_many(X)
        np.testing.assert_array_equal(found, model.predict_many(X))


@needs_compiler
@pytest.mark.parametrize("parts", [PARTS, FIRST_PARTS], ids=len)
@given(st.integers(-62135596800000000, 253402300799999999))
def test_times(times, parts, microseconds):
    numbers = np.full(len(parts), np.nan)
    times[parts](
        np.ctypeslib.ctypes.c_int64(microseconds),
        np.ctypeslib.ctypes.c_void_p(numbers.ctypes.data),
    )
    expected = time_features(np.array([microseconds], "datetime64[us]"), parts)[0]
    np.testing.assert_array_equal(numbers, expected)


@needs_compiler
@pytest.mark.parametrize("parts", [PARTS, FIRST_PARTS], ids=len)
@given(
    st.integers(-(2**63), -62135596800000001)
    | st.integers(253402300800000000, 2**63 - 1)
    | st.sampled_from([-(2**63), 2**63 - 1])
)
def test_times_outside_of_the_calendar_are_missing(times, parts, microseconds):
    numbers = np.zeros(len(parts))
    times[parts](
        np.ctypeslib.ctypes.c_int64(microseconds),
        np.ctypeslib.ctypes.c_void_p(numbers.ctypes.data),
    )
    assert np.isnan(numbers).all()


@needs_compiler
def test_the_days_of_a_time_are_as_precise_as_those_of_a_file(shell, tmp_path):
    """Least squares computes in double, so more digits would change its predictions."""
    lines = ["day,label"]
    lines += [f"2024-01-{1 + k % 28:02} 10:{k % 60:02}:07,{k % 28}" for k in range(80)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    options = ("--learner", "ridge", "--quiet")
    shell("train", tmp_path / "data.csv", "-o", tmp_path / "model.sb", *options)
    shell("predict", tmp_path / "data.csv", "-m", tmp_path / "model.sb", "-o", tmp_path / "out.csv")
    output = (tmp_path / "out.csv").read_text().splitlines()[1:]
    written = [float(line.split(",")[-1]) for line in output]
    model = load(tmp_path / "model.sb")
    compiled, found = CompiledModel(model, tmp_path), []
    for line in lines[1:]:
        numbers = np.zeros(len(PARTS))
        moment = np.datetime64(line.split(",")[0], "us").astype(int)
        compiled.function("time", None)(
            np.ctypeslib.ctypes.c_int64(moment), np.ctypeslib.ctypes.c_void_p(numbers.ctypes.data)
        )
        found.append(compiled._dense(numbers, [])[0])
    np.testing.assert_array_equal(found, written)
    assert model.predict_one({"day": lines[1].split(",")[0]}) == found[0]


@pytest.fixture(scope="module")
def times(tmp_path_factory):
    from spanboost.data.schema import Column, Schema
    from spanboost.data.target import NumberTarget

    def function(parts):
        model = span("linear")
        columns = [Column("t", False, time=True)]
        model.schema = Schema("table", NumberTarget(), columns=columns, time_parts=parts)
        model.learn_many(np.ones((4, len(parts))), np.arange(4.0))
        return CompiledModel(model, tmp_path_factory.mktemp("times")).function("time", None)

    with plain():
        return {parts: function(parts) for parts in (PARTS, FIRST_PARTS)}


@needs_compiler
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_probabilities(loss, tmp_path):
    with plain():
        model = trained(span("trees", loss), "dense", loss)
        compiled = CompiledModel(model, tmp_path)
        scores = model.predict_many(rows_of("dense"))
    chances = compiled.function("probabilities", None)
    pointer = np.ctypeslib.ctypes.c_void_p
    for score, expected in zip(scores, probabilities(scores), strict=True):
        given, out = np.atleast_1d(score).copy(), np.empty(len(expected))
        chances(pointer(given.ctypes.data), pointer(out.ctypes.data))
        np.testing.assert_allclose(out, expected, rtol=1e-13)


@needs_compiler
def test_infinite_numbers_are_refused(tmp_path):
    with plain():
        compiled = CompiledModel(trained(span("trees"), "dense", "squared"), tmp_path)
    for bad in (np.inf, -np.inf, 1e39):
        with pytest.raises(ValueError, match="invalid"):
            compiled.predict_many(np.array([[1.0, 2.0, bad, 3.0]]))


@needs_compiler
@pytest.mark.parametrize("learner", ["linear", "trees"])
def test_codes_and_columns_that_are_too_large_are_refused(learner, tmp_path):
    X, codes = np.zeros((1, 3)), np.zeros((1, 2), np.int64)
    with plain():
        model = trained(span(learner), "codes", "squared")
        named = trained(span(learner), "names", "squared")
        dense, sparse = CompiledModel(model, tmp_path, "dense"), CompiledModel(named, tmp_path)
        for code, fits in ((2**40 - 1, True), (2**40, False), (2**63 - 1, False)):
            codes[0, 1] = code
            for predict in (model.predict_many, dense.predict_many):
                if fits:
                    predict(Rows(X, codes))
                    sparse._sparse([code], [1.0])
                else:
                    with pytest.raises(ValueError, match=r"too large|invalid"):
                        predict(Rows(X, codes))
                    with pytest.raises(ValueError, match="invalid"):
                        sparse._sparse([code], [1.0])


@needs_compiler
def test_the_program_on_the_page(shell, tmp_path):
    (program,) = re.findall(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "main.c").write_text(program)
    (tmp_path / "flats.csv").write_text("size,city,price\n50,Ulm,210\n80,Bonn,330\n65,,270\n")
    path = tmp_path / "flats.sb"
    shell("train", tmp_path / "flats.csv", "-o", path, "--quiet", "--learner", "trees", "-n", "8")
    shell("export", path, "--to", "c", "-o", tmp_path / "flats.c", "--name", "flats")
    sources = [tmp_path / "main.c", tmp_path / "flats.c"]
    subprocess.run([COMPILER, *WARNINGS, "-o", tmp_path / "predict", *sources, "-lm"], check=True)
    found = subprocess.run([tmp_path / "predict"], capture_output=True, check=True).stdout
    assert float(found) == load(path).predict_one({"size": 70, "city": "Ulm"})


def test_no_training_rows(tmp_path):
    rows = rows_of("dense")
    with plain():
        export(trained(MODELS["replay"](), "dense", "squared"), tmp_path / "model.c")
    source = (tmp_path / "model.c").read_bytes()
    assert not holds_rows([source], rows)
    runs = [row[k : k + 2] for row in rows for k in range(3)]
    written = [",".join(number(one) for one in run.astype(t)) for run in runs for t in ("f4", "f8")]
    assert not any(one.encode() in source for one in written)


@pytest.mark.parametrize("learner", [LinearBall(20.0), Symmetrised(Stumps())])
def test_learners_that_cannot_be_exported(learner, tmp_path):
    linear = {"feedback": "linear"} if isinstance(learner, Symmetrised) else {}
    with plain():
        model = SpanBoost(learner, 2, **linear)
        model.learn_many(np.full((3, 2), 0.5), np.zeros(3))
        with pytest.raises(UserError, match="only models of linear functions, stumps"):
            export(model, tmp_path / "model.c")
    assert not any(tmp_path.iterdir())


def test_bad_arguments(tmp_path):
    with plain():
        model = trained(span("linear"), "dense", "squared")
    with pytest.raises(ValueError, match="name must be an identifier of C"):
        export(model, tmp_path / "model.c", name="my model")
    with pytest.raises(ValueError, match="to must be 'c'"):
        export(model, tmp_path / "model.pmml")
    with pytest.raises(UserError, match="has not learned any rows"):
        export(span("linear"), tmp_path / "model.c")
    with pytest.raises(TypeError, match="export needs a model"):
        export(object(), tmp_path / "model.c")


@given(st.floats(width=32, allow_nan=False))
def test_literals_have_the_same_bits(x):
    literal = number(np.float32(x)).replace("INFINITY", "inf")
    assert np.float32(literal.rstrip("f") if "inf" not in literal else literal) == np.float32(x)
    assert float(number(x).replace("INFINITY", "inf")) == x


def test_literals():
    assert number(1.0) == "1.0"
    assert number(np.float32(0.1)) == "0.100000001f"
    assert text('a"\\?é') == '"a\\042\\134\\077\\303\\251"'
    assert table("none", np.zeros(0, np.int32)) == "static const int32_t none[1] = {\n0,\n};\n"
