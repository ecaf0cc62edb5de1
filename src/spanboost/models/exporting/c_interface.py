"""The public functions of an exported C file, and the comment that explains them."""

import math
from collections.abc import Sequence
from importlib.resources import files

from spanboost import __version__
from spanboost.models.exporting.c_literals import check_texts, comment, encoded, escaped, text
from spanboost.models.exporting.program import Program
from spanboost.models.exporting.row_form import CODE_LIMIT, RowForm
from spanboost.rows.table_form import Categories
from spanboost.rows.times import CYCLES, FIRST_PARTS

_SHOWN = 500  # columns that the comment lists
# what the columns of rows without names are
_COLUMNS = {
    "svmlight": ["The column of a feature is its index in svmlight files."],
    "vw": [
        "The column of a feature is its hash in Vowpal Wabbit: the number plus a seed if the name\n"
        "consists of digits, otherwise MurmurHash3 (x86, 32 bits) with that seed, modulo 2^32.\n"
        "The seed is the hash of the namespace, whose own seed is 0. The value of a feature is\n"
        "multiplied by the weight of its namespace. List features in the order of the line."
    ],
}


def interface(program: Program, name: str, part: str, single: bool) -> tuple[str, str]:
    """Return the comment at the top, and the source of the public functions.

    part: the function that predicts.
    single: whether the model reads numbers as float.
    """
    form = program.form
    _check_texts(program)
    pieces = [_texts(form, name), _predict(form, name, part, single)]
    if program.classes:
        pieces.append(_probabilities(program, name))
    if form.time_parts:
        source = _template("times").replace("NAME_", f"{name}_")
        source = source.replace("COUNT", str(len(form.time_parts)))
        rounding = "" if tuple(form.time_parts) == FIRST_PARTS else f"{_template('rounding')}\n"
        pieces.append(rounding + source.replace("    PARTS;\n", _time_parts(form.time_parts)))
    return _comment(program, name), "\n".join(filter(None, pieces))


def _check_texts(program: Program) -> None:
    """Raise a UserError if the program compares or returns a text that C cannot hold."""
    form = program.form
    check_texts("class", program.classes)
    for one in form.categories:
        check_texts("category", one.texts)
    if form.columns == "names":
        check_texts("feature", form.names)


def _template(name: str) -> str:
    return (files(__package__) / "c" / f"{name}.c").read_text()


def _time_parts(parts: Sequence[str]) -> str:
    """Return the statements that set the numbers of a time."""
    lines, form = [], "{}" if tuple(parts) == FIRST_PARTS else "round_to_float({})"
    for j, part in enumerate(parts):
        cycle, _, wave = part.partition("_")
        value = f"{wave}({cycle} * {2 * math.pi / CYCLES[cycle]!r})" if wave else cycle
        lines.append(f"    numbers[{j}] = {form.format(value)};\n")
    return "".join(lines)


def _comment(program: Program, name: str) -> str:
    """Return the comment that describes the model and explains the functions."""
    form = program.form
    description = escaped(program.description)
    blocks = [f"{description}, exported by spanboost {__version__}."]
    blocks += [f"Compile it with a C99 compiler, such as: cc -std=c99 -O2 -c {name}.c"]
    blocks += _sparse_usage(form, name) if form.sparse else _dense_usage(form, name)
    if any(one.texts or one.bits is not None for one in form.categories):
        blocks += [
            f"    int64_t {name}_code(int column, const char *category);",
            "returns the code of a category in UTF-8, given the number of its column; -1 if it is\n"
            + _not_a_category(form),
        ]
    if form.time_parts:
        blocks += [
            f"    void {name}_time(int64_t microseconds, double *numbers);",
            f"sets the {len(form.time_parts)} numbers of a time: {', '.join(form.time_parts)};\n"
            "they are NaN for a time outside of the years 1 to 9999, such as INT64_MIN.",
        ]
        if form.sparse:
            first = form.time_parts[0]
            blocks.append(
                f'They are features of their own: the time "sold" has the keys "sold.{first}", ...'
            )
    number = "one number" if program.outputs == 1 else f"{program.outputs} numbers"
    integer = "column" if form.sparse else "code"
    blocks.append(
        f"`prediction` gets {number}. The result is 0, or 1 if a number is infinite or too\n"
        f"large, or a {integer} is 2^40 or larger; then nothing is written."
    )
    if program.classes:
        blocks += [
            f"    void {name}_probabilities(const double *prediction, double *probabilities);",
            f"sets the probabilities of the {len(program.classes)} classes in {name}_classes.",
        ]
    blocks.append("All functions are reentrant and allocate no memory.")
    first, *lines = comment("\n\n".join(blocks)).splitlines()
    return "\n".join([f"/* {first}", *(f" * {line}".rstrip() for line in lines)]) + " */"


def _not_a_category(form: RowForm) -> str:
    """Return which texts have no code: a data frame can have the empty text as a category."""
    learned = any("" in one.texts for one in form.categories)
    return "unknown or NULL." if learned else "unknown, empty or NULL."


def _sparse_usage(form: RowForm, name: str) -> list[str]:
    usage = [
        f"    int {name}_predict(const int64_t *columns, const double *values,\n"
        "                       int64_t entries, double *prediction);",
        "A row is a list of columns and their values. Other columns are 0. NaN is a missing\n"
        "value, and a negative column is an unknown feature.",
    ]
    if not form.named:
        return [*usage, *_COLUMNS.get(form.columns or "", ())]
    unknown = ", or -1 if it is unknown" if form.columns == "names" else ""
    return [
        *usage,
        f"    int64_t {name}_column(const char *feature);",
        f"returns the column of a feature in UTF-8{unknown}. The feature of a number\n"
        'is its key; the category "red" of the key "colour" is the feature "colour=red" with\n'
        "value 1. List features in the sorted order of their keys.",
    ]


def _dense_usage(form: RowForm, name: str) -> list[str]:
    codes = [one.name for one in form.categories]
    return [
        f"    int {name}_predict(const double *numbers, const int64_t *codes, double *prediction);",
        f"`numbers` has {form.numbers} values; NaN is a missing one. `codes` has {len(codes)};\n"
        "a negative code is a missing or unknown category.",
        *_listed("numbers", form.names),
        *_listed("codes", codes),
    ]


def _listed(what: str, names: Sequence[str]) -> list[str]:
    lines = [f"    {what}[{k}]: {text(name)}" for k, name in enumerate(names[:_SHOWN])]
    lines += ["    ..."] if len(names) > _SHOWN else []
    return ["\n".join(lines)] if lines else []


def _texts(form: RowForm, name: str) -> str:
    """Return the functions that find columns and codes."""
    numbered = [(k, one) for k, one in enumerate(form.categories) if one.texts]
    hashed = [(k, one) for k, one in enumerate(form.categories) if one.bits is not None]
    source = _template("texts") if numbered or form.columns == "names" else ""
    source += _template("crc32") if hashed or form.columns == "hashed" else ""
    if form.named:
        column = "crc32_of(feature)"
        if form.columns == "names":
            source += _text_table("features", form.names)
            column = f"find_text(features, {len(form.names)}, feature)"
        source += f"""
int64_t {name}_column(const char *feature)
{{
    return {column};
}}
"""
    if not numbered and not hashed:
        return source
    source += "".join(_text_table(f"categories_{k}", one.texts) for k, one in numbered)
    cases = "".join(_case(k, one) for k, one in sorted(numbered + hashed))
    return f"""{source}
int64_t {name}_code(int column, const char *category)
{{
    if (!category)
        return -1;
    switch (column) {{
{cases}    default:
        return -1;
    }}
}}
"""


def _case(k: int, one: Categories) -> str:
    if one.bits is not None:
        found = f"*category ? crc32_of(category) & INT64_C({2**one.bits - 1}) : -1"
    else:
        found = f"find_text(categories_{k}, {len(one.texts)}, category)"
    return f"    case {k}:\n        return {found};\n"


def _text_table(name: str, texts: Sequence[str]) -> str:
    """Return a table of texts and their numbers, sorted as strcmp sorts them."""
    order = sorted(range(len(texts)), key=lambda k: encoded(texts[k]))
    rows = "".join(f"    {{{text(texts[k])}, {k}}},\n" for k in order)
    return f"static const struct text {name}[] = {{\n{rows or '    {0, 0},'}}};\n"


def _predict(form: RowForm, name: str, part: str, single: bool) -> str:
    cast = "(double)(float)" if single else ""
    if form.sparse:
        head = "const int64_t *columns, const double *values, int64_t entries, double *prediction"
        row, count, values = "{0, 0, columns, values, entries}", "entries", "values"
        given = "columns", "entries"
    else:
        head = "const double *numbers, const int64_t *codes, double *prediction"
        row, count, values = "{numbers, codes, 0, 0, 0}", "NUMBERS", "numbers"
        given = "codes", "CODES"
    codes, number = given
    return f"""\
int {name}_predict({head})
{{
    const struct row row = {row};
    for (int64_t k = 0; k < {count}; k++)
        if (isinf({cast}{values}[k]))
            return 1;
    for (int64_t k = 0; k < {number}; k++)
        if ({codes}[k] >= INT64_C({CODE_LIMIT}))
            return 1;
    {part}(&row, 1, prediction);
    return 0;
}}
"""


def _probabilities(program: Program, name: str) -> str:
    number = len(program.classes)
    names = ", ".join(map(text, program.classes))
    score = "(c ? prediction[0] : 0.0)" if program.binary else "prediction[c]"
    return f"""\
const char *const {name}_classes[{number}] = {{{names}}};

void {name}_probabilities(const double *prediction, double *probabilities)
{{
    double top = -INFINITY, total = 0;
    for (int c = 0; c < {number}; c++)
        top = {score} > top ? {score} : top;
    for (int c = 0; c < {number}; c++) {{
        probabilities[c] = exp({score} - top);
        total += probabilities[c];
    }}
    for (int c = 0; c < {number}; c++)
        probabilities[c] /= total;
}}
"""
