"""Load model files with random changes in them, under a limit on memory.

`python tests/support/fuzzed_files.py SEED CASES [compiled]` ends with status 0 if every file is
refused with one sentence, or is a model that predicts, learns, can be described and saved. Plain
Python notices every index out of range; compiled code runs all kinds of models.
"""

import copy
import faulthandler
import json
import random
import resource
import sys
import tempfile
import traceback
import warnings
from contextlib import nullcontext
from pathlib import Path

import frozen_models
import numpy as np
from forged import read_file
from safetensors.numpy import save_file

from spanboost import (
    AutoBoost,
    DataError,
    FiniteClass,
    HullBoost,
    LinearSGD,
    ModelFileError,
    Network,
    Ridge,
    SpanBoost,
    Stumps,
    Trees,
    load,
    save,
)
from spanboost.cli.commands.inspect import as_json, report
from spanboost.cli.output.inspection import describe
from spanboost.compiling.kernels import plain
from spanboost.errors import UserError
from spanboost.models import files
from spanboost.models.files import to_bytes

MEMORY = 6 * 2**30  # bytes of address space; compilers need a part of it
PATIENCE = 600  # seconds after which a case counts as endless
ROWS = 50
WILD = [0, -1, 1, 2, 3, 255, 2**30, 2**31, 2**53, 2**63, -(2**64), 10**400, 1e9, 1e308, -0.0, 0.5]
OTHER = [None, True, "", "x" * 999, "auto", [], {}, [1, 2], [[3, [3]]], {"class": "Hinge"}]
DTYPES = [np.float16, np.float32, np.float64, np.int8, np.int64]
numbers, named, coded = frozen_models.numbers, frozen_models.named, frozen_models.coded


def values(rows=60):
    X, y = numbers(rows)
    return X.clip(-0.9, 0.9), y


def booster(learner, **parameters):
    return lambda: SpanBoost(learner, n=2, **parameters)


NEW = {  # kinds that version 0.1 did not have
    "ridge": (booster(Ridge(columns=8), label_range="auto"), named),
    "ridge-kink": (lambda: HullBoost(Ridge(), 2, loss="absolute"), numbers),
    "ridge-replay": (booster(Ridge(columns=4), replay=1, memory=9), coded),
    "drawn": (booster(FiniteClass(randomised=True)), values),
    "drawn-replay": (booster(FiniteClass(randomised=True), replay=2, memory=20), values),
    "hashed": (booster(Network(hidden=2, bits=4), label_range="auto"), named),
    "sparse-replay": (booster(LinearSGD(), replay=1, memory=30, label_range="auto"), named),
    "intercepts": (booster(Stumps(intercept=True), label_range="auto-zero"), numbers),
    "trees": (booster(Trees(depth=3, candidates=4, grace=5), label_range="auto"), coded),
    "auto": (lambda: AutoBoost(budget="fast"), named),
}


def write_kinds(folder, compiled):
    """Write a file of every kind; return paths and rows by name. AutoBoost needs compiling."""
    kinds = {}
    for name, (_, rows) in frozen_models.MODELS.items():
        kinds[name] = frozen_models.FOLDER / f"{name}.sb", rows
    for name, (make, rows) in NEW.items():
        if compiled or name != "auto":
            states = ("fresh", "learned", "compact")
            model, files = make(), [folder / f"{name}-{state}.sb" for state in states]
            save(model, files[0])
            model.learn_many(*rows())
            save(model, files[1])
            save(model, files[2], compact=True)
            kinds |= {file.stem: (file, rows) for file in files}
    return {name: kind for name, kind in kinds.items() if compiled or not name.startswith("auto")}


def write(path, header, arrays):
    """Write a file with a valid checksum, unless the header is not JSON."""
    header.pop("checksum", None)
    try:
        checksum = files._checksum(header, arrays)
    except (ValueError, TypeError):
        checksum = 0
    save_file(arrays, path, metadata={"spanboost": json.dumps(header | {"checksum": checksum})})


def places(node):
    """Yield (container, key) for everything in a JSON value."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from places(node[key])


def change_header(rng, header):
    container, key = rng.choice([p for p in places(header) if p[1] not in ("library", "run")])
    old = container[key]
    kind = rng.randrange(10)
    if kind < 4 and isinstance(old, int | float) and not isinstance(old, bool):
        container[key] = rng.choice([old + 1, old - 1, 2 * old, old * 2**20, -old, str(old)])
    elif kind < 7:
        container[key] = rng.choice(WILD)
    elif kind == 7:
        container[key] = copy.deepcopy(rng.choice(OTHER))
    elif kind == 8:
        other, name = rng.choice(list(places(header)))
        container[key] = copy.deepcopy(other[name])
    else:
        del container[key]


def wild_numbers(rng, array):
    """Return numbers of the array's dtype, of its shape."""
    if array.dtype.kind == "f":
        wild = [0.0, -1.0, 1e-30, 1e30, np.inf, -np.inf, np.nan, float(np.finfo(array.dtype).max)]
    else:
        limits = np.iinfo(array.dtype)
        wild = [0, 1, 2, 3, 63, 64, limits.min, limits.max, limits.max // 2, limits.min // 2]
        wild = [value for value in [-1, *wild] if limits.min <= value <= limits.max]
    few = rng.sample(wild, 2)  # with all of them, almost every array would contain NaN
    return np.array(rng.choices(few, k=array.size), array.dtype).reshape(array.shape)


def change_array(rng, arrays):
    if not arrays:
        arrays["bank.more"] = np.zeros(3)
        return
    name = rng.choice(sorted(arrays))
    old, kind = arrays[name], rng.randrange(12)
    if kind < 4:
        arrays[name] = wild_numbers(rng, old)
    elif kind < 8 and old.size:
        new = old.copy()
        new.flat[rng.randrange(new.size)] = wild_numbers(rng, old).flat[0]
        arrays[name] = new
    elif kind == 8 and old.ndim and len(old):
        arrays[name] = rng.choice([old[:-1], old[:0], np.concatenate([old, old]), old[::-1]]).copy()
    elif kind == 9:
        arrays[name] = rng.choice([old.reshape(-1), old[None], np.zeros((0, 2**20), old.dtype)])
    elif kind == 10:
        arrays[name] = old.astype(rng.choice(DTYPES))
    elif kind == 11:
        arrays.pop(name) if rng.random() < 0.5 else arrays.update({f"{name}.x": old})


def use(path, rows, compiled):
    """Load a file, and use the model in every way; return why the file was refused, if it was."""
    # rows of another kind, or tables that do not fit; in plain Python, the logarithm of 0 is wrong
    allowed = (DataError, MemoryError) if compiled else (ValueError, ArithmeticError, MemoryError)
    allowed += (UserError,)  # a compact model does not learn
    try:
        model = load(path)
    except ModelFileError as error:
        return str(error)
    X, y = rows(ROWS)
    try:
        model.predict_many(X)
        model.learn_many(X, y)
        if isinstance(X, list | np.ndarray):
            model.learn_one(X[0], y[0])
    except allowed:
        pass
    facts = report(model, 5) | {"bytes": 0}
    describe(facts, everything=True)
    as_json(facts)
    try:
        to_bytes(model)
    except ModelFileError as error:  # absurd numbers of the file have become NaN
        return str(error)
    return None


def main(seed, cases, compiled):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    refused = 0
    with tempfile.TemporaryDirectory() as name, nullcontext() if compiled else plain():
        folder = Path(name)
        kinds = write_kinds(folder, compiled)
        for case in range(seed, seed + cases):
            rng = random.Random(case)
            kind = rng.choice(sorted(kinds))
            header, arrays = read_file(kinds[kind][0])
            for _ in range(rng.choice([1, 1, 2])):
                change_header(rng, header) if rng.random() < 0.5 else change_array(rng, arrays)
            write(folder / "changed.sb", header, arrays)
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            print("case", case, kind, file=sys.stderr, flush=True)
            try:
                why = use(folder / "changed.sb", kinds[kind][1], compiled)
            except Exception:
                traceback.print_exc()
                return 1
            faulthandler.cancel_dump_traceback_later()
            if why is not None:
                refused += 1
                if "\n" in why or len(why) > 900:
                    print("not one sentence:", why[:2000], file=sys.stderr)
                    return 1
    print(f"{cases} cases, {refused} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] == ["compiled"]))
