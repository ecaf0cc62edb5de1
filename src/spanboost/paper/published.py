"""The figures of the paper: the tables of its supplement and the table of its Section 6.

All figures are as printed. Losses are average squared losses on the second half of each data set.
"""

from typing import NamedTuple

LEARNERS = ("linear", "stumps", "network")  # the paper's SGD, regression stumps, neural networks
ALGORITHMS = ("span", "hull")  # Algorithm 1, Algorithm 2


class Description(NamedTuple):
    """A row of the supplement's table of data sets."""

    rows: int
    features: int
    active: float  # average number of active features in a row
    task: str
    low: float  # least label
    high: float  # largest label


class Losses(NamedTuple):
    """The losses of a base learner alone and under each algorithm."""

    baseline: float
    span: float
    hull: float

    def improvement(self, algorithm: str) -> float:
        """Return the share of the baseline's loss that an algorithm saves; 0 if that loss is 0."""
        return 1 - float(getattr(self, algorithm)) / self.baseline if self.baseline else 0.0


DESCRIPTIONS = {
    "a9a": Description(48_841, 123, 14, "classification", -1, 1),
    "abalone": Description(4_177, 10, 9, "regression", 1, 29),
    "activity": Description(165_632, 20, 18.5, "classification", -1, 1),
    "adult": Description(48_842, 105, 12, "classification", 0, 1),
    "bank": Description(45_211, 45, 15, "classification", -1, 1),
    "cal_housing": Description(20_640, 9, 9, "regression", 0, 1),
    "casp": Description(45_730, 10, 10, "regression", 0, 1),
    "census": Description(299_284, 401, 32, "classification", -1, 1),
    "covtype": Description(581_011, 54, 12, "classification", -1, 1),
    "phy": Description(50_000, 74, 32, "classification", 0, 1),
    "letter": Description(20_000, 16, 15.6, "classification", -1, 1),
    "shuttle": Description(43_500, 9, 8, "classification", -1, 1),
    "slice": Description(53_500, 385, 135, "regression", 0, 1),
    "year": Description(463_715, 90, 90, "regression", 0, 1),
}

_PRINTED = {  # baseline, Alg 1 and Alg 2 for SGD, then for stumps, then for networks
    "phy": "0.7475 0.7466 0.7470  0.9201 0.7733 0.7924  0.7441 0.7480 0.7446",
    "cal_housing": "0.0094 0.0094 0.0104  0.0151 0.0138 0.0124  0.0096 0.0096 0.0107",
    "casp": "0.0632 0.0631 0.0630  0.0741 0.0741 0.0742  0.0639 0.0632 0.0631",
    "a9a": "0.4261 0.4283 0.4249  0.5749 0.5074 0.5758  0.4256 0.4266 0.4246",
    "abalone": "3.7263 3.7482 3.7154  6.7791 3.8273 4.2270  3.7380 3.7255 3.7212",
    "activity": "0.0334 0.0337 0.0316  0.4492 0.1454 0.3141  0.0192 0.0143 0.0186",
    "adult": "0.1055 0.1057 0.1056  0.1388 0.1261 0.1250  0.1081 0.1062 0.1081",
    "bank": "0.2971 0.2968 0.2973  0.3774 0.3240 0.3257  0.2962 0.2969 0.2969",
    "census": "0.1544 0.1545 0.1553  0.2073 0.1884 0.1789  0.1531 0.1531 0.1523",
    "covtype": "0.7256 0.7270 0.7286  0.7910 0.7986 0.7911  0.6807 0.6465 0.6757",
    "letter": "0.6441 0.5698 0.6108  0.7420 0.7087 0.7168  0.6542 0.5729 0.6108",
    "shuttle": "0.1616 0.1547 0.1577  0.8551 0.3678 0.4354  0.0760 0.0694 0.0802",
    "slice": "0.0076 0.0067 0.0065  0.0559 0.0362 0.0410  0.0054 0.0022 0.0044",
    "year": "0.0116 0.0119 0.0115  0.0152 0.0140 0.0141  0.0116 0.0119 0.0122",
}

TABLE_2: dict[str, dict[str, Losses]] = {
    name: {
        learner: Losses(*map(float, line.split()[3 * k : 3 * k + 3]))
        for k, learner in enumerate(LEARNERS)
    }
    for name, line in _PRINTED.items()
}

# average and median relative improvement over the 14 data sets, as printed
TABLE_1 = {
    "linear": {
        "average": {"span": 0.0165, "hull": 0.0133},
        "median": {"span": 0.0003, "hull": 0.0029},
    },
    "stumps": {
        "average": {"span": 0.2022, "hull": 0.159},
        "median": {"span": 0.1045, "hull": 0.1369},
    },
    "network": {
        "average": {"span": 0.0788, "hull": 0.0072},
        "median": {"span": 0.0072, "hull": 0.0033},
    },
}
