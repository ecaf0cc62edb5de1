"""Streams of River: generators with drift, and the data sets that come with the package.

Abrupt and gradual streams change between four concepts, after each quarter of the rows. A gradual
change takes a tenth of the rows. Incremental streams change with every row.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

CONCEPTS = 4


class Stream(NamedTuple):
    """Rows of numbers and their labels."""

    X: np.ndarray
    y: np.ndarray
    classes: int  # 0 for regression


def _agrawal(synth: Any, concept: int, seed: int) -> Any:
    return synth.Agrawal(classification_function=(0, 4, 2, 6)[concept], seed=seed + concept)


def _sea(synth: Any, concept: int, seed: int) -> Any:
    return synth.SEA(variant=concept, noise=0.1, seed=seed + concept)


def _led(synth: Any, concept: int, seed: int) -> Any:
    swapped = (0, 3, 5, 7)[concept]
    noise = {"noise_percentage": 0.1, "irrelevant_features": True}
    return synth.LEDDrift(seed=seed + concept, n_drift_features=swapped, **noise)


def _hyperplane(synth: Any, concept: int, seed: int) -> Any:
    return synth.Hyperplane(seed=10 * seed + concept, n_features=10, n_drift_features=2)


def _rbf(synth: Any, concept: int, seed: int) -> Any:
    centres = 10 * seed + concept
    return synth.RandomRBF(
        seed_model=centres, seed_sample=centres, n_classes=5, n_features=10, n_centroids=50
    )


FAMILIES: dict[str, tuple[Callable[[Any, int, int], Any], int]] = {  # and their classes
    "agrawal": (_agrawal, 2),
    "sea": (_sea, 2),
    "led": (_led, 10),
    "hyperplane": (_hyperplane, 2),
    "rbf": (_rbf, 5),
}
KINDS = ("abrupt", "gradual")
WIDTH = 0.1  # of a gradual change, as a part of the rows


def _moving_hyperplane(synth: Any, seed: int, speed: float) -> Any:
    return synth.Hyperplane(seed=seed, n_features=10, n_drift_features=10, mag_change=speed)


def _moving_rbf(synth: Any, seed: int, speed: float) -> Any:
    return synth.RandomRBFDrift(
        seed_model=seed,
        seed_sample=seed,
        n_classes=5,
        n_features=10,
        n_centroids=50,
        n_drift_centroids=50,
        change_speed=speed,
    )


INCREMENTAL: dict[str, tuple[Callable[[Any, int, float], Any], float, int]] = {
    "hyperplane moving": (_moving_hyperplane, 0.001, 2),
    "hyperplane moving fast": (_moving_hyperplane, 0.01, 2),
    "rbf moving": (_moving_rbf, 0.0001, 5),
    "rbf moving fast": (_moving_rbf, 0.001, 5),
}
DRIFTING = (*(f"{name} {kind}" for name in FAMILIES for kind in KINDS), *INCREMENTAL)
BUNDLED = {  # River's name, the number of classes
    "bananas": ("Bananas", 2),
    "phishing": ("Phishing", 2),
    "image segments": ("ImageSegments", 7),
    "trump approval": ("TrumpApproval", 0),
    "chick weights": ("ChickWeights", 0),
}


def load(name: str, rows: int, seed: int) -> Stream:
    """Return a stream; the bundled ones have rows of their own."""
    if name in BUNDLED:
        return _bundled(*BUNDLED[name])
    from river.datasets import synth

    if name in INCREMENTAL:
        make, speed, classes = INCREMENTAL[name]
        return _taken(make(synth, seed, speed), rows, classes)
    family, kind = name.split()
    concept, classes = FAMILIES[family]
    concepts = [concept(synth, i, seed) for i in range(CONCEPTS)]
    if kind == "abrupt":
        parts = (itertools.islice(one, rows // CONCEPTS) for one in concepts)
        return _taken(itertools.chain.from_iterable(parts), rows, classes)
    changing = concepts[0]
    for i, one in enumerate(concepts[1:], 1):
        position, width = i * rows // CONCEPTS, int(WIDTH * rows)
        changing = synth.ConceptDriftStream(changing, one, position, width, seed)
    return _taken(changing, rows, classes)


def _taken(source: Iterable[Any], rows: int, classes: int) -> Stream:
    """Return the first rows of a generator."""
    pairs = list(itertools.islice(source, rows))
    X = np.array([list(x.values()) for x, _ in pairs], np.float32)
    return Stream(X, np.array([int(y) for _, y in pairs], float), classes)


def _bundled(name: str, classes: int) -> Stream:
    """Return a data set of River; texts become numbers in the order in which they appear."""
    from river import datasets

    numbers: dict[Any, int] = {}
    rows, labels = [], []
    for x, y in getattr(datasets, name)():
        rows.append([_number(value) for value in x.values()])
        labels.append(float(y) if classes == 0 else numbers.setdefault(y, len(numbers)))
    if classes == 2 and set(numbers) == {False, True}:
        labels = [float(bool(list(numbers)[int(y)])) for y in labels]
    return Stream(np.array(rows, np.float32), np.array(labels, float), classes)


def _number(value: Any) -> float:
    return float(value.toordinal()) if hasattr(value, "toordinal") else float(value)
