"""A prediction program as one C99 file without dependencies.

Functions that do not depend on the model are templates in the folder c: `real` stands for float or
double, and `_R` for the suffix of their names. Tables and the functions of parts follow them.
"""

import re
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from spanboost.errors import ParameterError
from spanboost.models.exporting.c_banks import Names, bank_code, real_type
from spanboost.models.exporting.c_interface import interface
from spanboost.models.exporting.c_literals import number, table
from spanboost.models.exporting.combinations import LabelMix, LogisticMix, Mean, Mixed
from spanboost.models.exporting.program import (
    BoosterPart,
    CombinedPart,
    Part,
    Program,
    forecasts_of,
)

_ORDER = (  # of templates
    *("rows", "boosting", "features", "normalise", "trees", "sums", "linear", "network", "stumps"),
    *("ridge", "ridge_real", "mix_labels", "mix_logistic", "mix_softmax"),
)


class PartCode(NamedTuple):
    """The C source of a part: a function that writes its forecasts."""

    modules: frozenset[tuple[str, str]]  # templates, and the suffix of their type
    source: str
    forecasts: int  # largest number of forecasts that are combined
    name: str  # of the function


def c_source(program: Program, name: str = "model") -> str:
    """Return the source; the names of its functions begin with `name`."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ParameterError("name", f"must be an identifier of C (got {name!r:.40})")
    part = _part_code(program.part, "part")
    single = any(suffix == "32" for _, suffix in part.modules)
    macros = {
        "OUTPUTS": program.outputs,
        "NUMBERS": program.form.numbers,
        "CODES": len(program.form.categories),
        "STRIDE": 2 if program.form.categories else 1,
        "MOST_FORECASTS": part.forecasts,
    }
    before, after = interface(program, name, part.name, single)
    return "\n".join(
        [
            f"{before}\n",
            "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n",
            "".join(f"#define {key} {value}\n" for key, value in macros.items()),
            *_templates(part.modules),
            part.source,
            after,
        ]
    )


def template(name: str, suffix: str = "64") -> str:
    """Return a template for the type with this suffix."""
    text = (files(__package__) / "c" / f"{name}.c").read_text()
    real, root = {"32": ("float", "sqrtf"), "64": ("double", "sqrt")}[suffix]
    text = re.sub(r"_R\b", f"_{suffix}", text.replace("root_R", root))
    return re.sub(r"\breal\b", real, text)


def _templates(modules: frozenset[tuple[str, str]]) -> list[str]:
    """Return the templates that are needed, each once for every type."""
    needed = {("rows", "64"), *modules}
    ordered = sorted(needed, key=lambda one: (_ORDER.index(one[0]), one[1]))
    plain = {"rows", "ridge", "mix_labels", "mix_logistic", "mix_softmax"}
    found = {(name, "64" if name in plain else suffix): None for name, suffix in ordered}
    return [template(*one) for one in found]


def _part_code(part: Part, name: str) -> PartCode:
    return (
        _booster_code(part, name) if isinstance(part, BoosterPart) else _combined_code(part, name)
    )


def _booster_code(part: BoosterPart, name: str) -> PartCode:
    real, suffix = real_type(part.dtype)
    copies, forecasts = part.lanes[-1].last, len(part.places)
    mask = "-1" if part.mask < 0 else f"INT64_C({part.mask})"
    code = bank_code(part.bank, Names(name, real, suffix, mask, copies))
    wanted = np.full(copies, -1, np.int32)
    wanted[list(part.places)] = np.arange(forecasts)
    tables = [table(f"{name}_wanted", wanted), table(f"{name}_centre", part.centre)]
    calls = []
    for c, lane in enumerate(part.lanes):
        tables += [table(f"{name}_keep{c}", lane.keep), table(f"{name}_eta{c}", lane.eta)]
        radius = "0" if lane.radius is None else number(lane.radius)
        tables.append(
            f"static const struct lane_{suffix} {name}_lane{c} = {{{lane.first}, {lane.last}, "
            f"{name}_keep{c}, {name}_eta{c}, {number(lane.scale)}, {int(lane.radius is not None)}, "
            f"{radius}}};\n"
        )
        calls.append(
            f"    add_copies_{suffix}(&{name}_lane{c}, h, {copies}, {name}_wanted, {forecasts}, "
            "sums);\n"
        )
    y = f"(double)sums[k * {forecasts} + j]"
    value = {
        "score": y,
        "log": f"{number(part.half)} * exp({y})",
        "linear": f"{name}_centre[k] + {number(part.half)} * {y}",
    }[part.link]
    unused = "" if part.link == "linear" else f"    (void){name}_centre;\n"
    source = f"""\
{code.tables}{"".join(tables)}
static void {name}(const struct row *row, int stride, double *out)
{{
    {real} h[OUTPUTS * {copies}], sums[OUTPUTS * {forecasts}];
{code.body}    project_{suffix}(h, {copies}, 0, {copies}, {number(part.D)});
{"".join(calls)}{unused}    for (int k = 0; k < OUTPUTS; k++)
        for (int j = 0; j < {forecasts}; j++)
            out[k * stride + j] = {value};
}}
"""
    modules = frozenset((module, suffix) for module in ("boosting", *code.modules))
    return PartCode(modules, source, forecasts, name)


def _combined_code(part: CombinedPart, name: str) -> PartCode:
    codes = [_part_code(one, f"{name}_{k}") for k, one in enumerate(part.parts)]
    counts = [forecasts_of(one) for one in part.parts]
    K = sum(counts)
    offsets = np.cumsum([0, *counts])
    calls = "".join(
        f"    {code.name}(row, {K}, forecasts + {offset});\n"
        for code, offset in zip(codes, offsets, strict=False)
    )
    tables, body, modules, most = _combination(part.how, name, K)
    source = f"""\
{"".join(code.source for code in codes)}{tables}
static void {name}(const struct row *row, int stride, double *out)
{{
    double forecasts[OUTPUTS * {K}], answer[OUTPUTS];
{calls}{body}}}
"""
    needed = frozenset(modules).union(*(code.modules for code in codes))
    return PartCode(needed, source, max(most, *(code.forecasts for code in codes)), name)


def _combination(
    how: Mean | Mixed, name: str, K: int
) -> tuple[str, str, set[tuple[str, str]], int]:
    """Return tables, statements, templates and the number of candidates of a combination."""
    if isinstance(how, Mean):
        body = f"""\
    for (int k = 0; k < OUTPUTS; k++) {{
        answer[k] = forecasts[k * {K}];
        for (int j = 1; j < {K}; j++)
            answer[k] += forecasts[k * {K} + j];
        out[k * stride] = answer[k] / {number(float(K))};
    }}
"""
        return "", body, set(), K
    mix = how.how
    tables = table(f"{name}_weights", mix.weights)
    most = len(mix.weights) + 1
    if isinstance(mix, LabelMix):
        module = "mix_labels"
        more, call = _label_mix(mix, name, K)
        tables += more
    elif isinstance(mix, LogisticMix):
        module = "mix_logistic"
        tables += table(f"{name}_inverse", mix.inverse) + table(f"{name}_moment", mix.moment)
        call = (
            f"mix_logistic({K}, {name}_weights, {name}_inverse, {name}_moment, forecasts, answer)"
        )
    else:
        module = "mix_softmax"
        call = f"mix_softmax({K}, {name}_weights, forecasts, answer)"
    return tables, _converted(how, call, K), {(module, "64")}, most


def _label_mix(mix: LabelMix, name: str, K: int) -> tuple[str, str]:
    tables, factors = "", []
    moment, ratio = np.zeros(K), 0.0
    for s, one in enumerate(mix.regressions):
        factors.append("0" if one is None else f"{name}_factor{s}")
        if one is not None:
            tables += table(f"{name}_factor{s}", np.tril(one.L))
            moment, ratio = one.moment, one.ratio
    listed = ", ".join(factors) or "0"
    tables += table(f"{name}_moment", moment)
    tables += (
        f"static const double *const {name}_factors[{max(len(factors), 1)}] = {{{listed}}};\n"
        f"static const struct mix_labels {name}_mix = {{{K}, {len(factors)}, {name}_weights, "
        f"{number(mix.low)}, {number(mix.high)}, {name}_factors, {name}_moment, "
        f"{number(ratio)}, {number(mix.shift)}}};\n"
    )
    return tables, f"mix_labels(&{name}_mix, forecasts, answer)"


def _converted(how: Mixed, call: str, K: int) -> str:
    """Return the statements that convert forecasts to the units of a mixture, and back."""
    half = number(how.half)
    centre = [number(one) for one in how.centre]
    listed = f"    static const double centre[] = {{{', '.join(centre)}}};\n"
    at = "centre[k]" if len(centre) > 1 else "centre[0]"
    there = f"(forecasts[k * {K} + j] - {at}) / {half}"
    back = f"{at} + {half} * answer[k]"
    if how.log_link:
        listed, there = "", f"log(forecasts[k * {K} + j] / {half})"
        back = f"{half} * exp(answer[k])"
    low, high = how.limits
    limit = (
        ""
        if np.isinf([low, high]).all()
        else (
            f"        out[k * stride] = out[k * stride] > {number(low)} ? out[k * stride] : "
            f"{number(low)};\n"
            f"        out[k * stride] = out[k * stride] < {number(high)} ? out[k * stride] : "
            f"{number(high)};\n"
        )
    )
    return f"""\
{listed}    for (int k = 0; k < OUTPUTS; k++)
        for (int j = 0; j < {K}; j++)
            forecasts[k * {K} + j] = {there};
    {call};
    for (int k = 0; k < OUTPUTS; k++) {{
        out[k * stride] = {back};
{limit}    }}
"""
