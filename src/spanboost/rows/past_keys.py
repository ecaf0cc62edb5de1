"""The last labels of each key, such as a store or a customer, in a table of fixed size.

A key belongs to one of 4,096 sets of eight slots. A new key takes a free slot of its set, or the
one whose key has not been seen for longest.
"""

from typing import NamedTuple

import numpy as np

from spanboost.compiling.arrays import Array
from spanboost.compiling.kernels import kernel

SETS, WAYS = 4096, 8
NO_KEY = -1
_LAGS = 3
_RATES = (0.3, 0.05)
_ERROR = 2  # the row of `means` for errors; it has the first rate


@kernel
class KeyTable(NamedTuple):
    """The last labels and errors of the keys that were seen last."""

    ident: Array  # [slots] the key; anything while `used` is 0
    used: Array  # [slots] the number of labels when the key had its last one; 0 for a free slot
    seen: Array  # [slots] labels of the key
    labels: Array  # [slots, 3] its last labels, the newest first
    error: Array  # [slots] its last error
    means: Array  # [slots, 3, 2] decayed sums and weights, of labels (twice) and of errors

    def find_slot(self, key: int) -> int:
        """Return the slot of a key; -1 if it has none."""
        first = key % SETS * WAYS
        for slot in range(first, first + WAYS):
            if self.used[slot] > 0 and self.ident[slot] == key:
                return slot
        return -1

    def read_key(self, key: int, count: int, out: Array, levels: int, others: int) -> None:
        """Write what is known about a key to `out`, from these two positions on."""
        slot = self.find_slot(key) if key >= 0 else -1
        for i in range(_LAGS):
            out[levels + i] = self.labels[slot, i] if slot >= 0 and i < self.seen[slot] else np.nan
        for r in range(len(_RATES)):
            out[levels + _LAGS + r] = self.key_mean(slot, r)
        out[others] = self.error[slot] if slot >= 0 else np.nan
        out[others + 1] = self.key_mean(slot, _ERROR)
        out[others + 2] = count + 1 - self.used[slot] if slot >= 0 else np.nan

    def key_mean(self, slot: int, r: int) -> float:
        """Return a decayed mean; NaN if the key has no slot."""
        return self.means[slot, r, 0] / self.means[slot, r, 1] if slot >= 0 else np.nan

    def learn_key(self, key: int, count: int, label: float, error: float) -> None:
        """Add a label of a key, and the error of its forecast."""
        if key < 0:
            return
        slot = self.find_slot(key)
        if slot < 0:
            slot = self.replace_key(key)
        for i in range(_LAGS - 1, 0, -1):
            self.labels[slot, i] = self.labels[slot, i - 1]
        self.labels[slot, 0], self.error[slot] = label, error
        self.seen[slot] += 1
        self.used[slot] = count
        for r in range(len(_RATES)):
            self.add_to_key_mean(slot, r, _RATES[r], label)
        self.add_to_key_mean(slot, _ERROR, _RATES[0], error)

    def add_to_key_mean(self, slot: int, r: int, rate: float, value: float) -> None:
        """Add a value to a decayed mean."""
        self.means[slot, r, 0] = (1 - rate) * self.means[slot, r, 0] + rate * value
        self.means[slot, r, 1] = (1 - rate) * self.means[slot, r, 1] + rate

    def replace_key(self, key: int) -> int:
        """Give a key the slot in its set that was not used for longest."""
        slot = key % SETS * WAYS
        for other in range(slot + 1, slot + WAYS):
            if self.used[other] < self.used[slot]:
                slot = other
        self.ident[slot], self.seen[slot] = key, 0
        self.means[slot] = 0.0
        return slot

    @property
    def sound(self) -> bool:
        """Whether all counts are valid."""
        weights = self.means[self.used > 0][:, :, 1]
        return bool((self.used >= 0).all() and (self.seen >= 0).all() and (weights > 0).all())


def new_key_table(keyed: bool) -> KeyTable:
    """Return a table without keys; one without slots if rows have no keys."""
    slots = SETS * WAYS if keyed else 0
    return KeyTable(
        ident=np.zeros(slots, np.int64),
        used=np.zeros(slots, np.int64),
        seen=np.zeros(slots, np.int64),
        labels=np.zeros((slots, _LAGS)),
        error=np.zeros(slots),
        means=np.zeros((slots, _ERROR + 1, 2)),
    )
