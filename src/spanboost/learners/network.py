"""Two-layer networks: sigmoid units between normalised features and a linear output.

Unit j of a copy is s_j = tanh(a_j / 2), a_j = sum_f W_fj z_f over the features of a row, and output
k is V_k0 + sum_j V_kj s_j. The steps are those of descent.py in the linearised network: every
weight steps along its own gradient by rate / root of the sum of its squares, all of them for as
long as the gradient flow of the loss says, reckoned by how far the outputs move together.

The output layer starts at 0, the units at random: each W_fj at a number of its own between -1 and
1, made of the seed, the copy and its place, so that copies differ, and neither their number nor the
moment when a feature appears matters.

Under linear feedback the functions are kept D-bounded: the units lie between -1 and 1, so that it
takes sum_j ||V_j|| <= D, the constant's among them, by shrinking the output layer of a copy.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spanboost._jit import kernel
from spanboost.arrays import Array
from spanboost.block import Row
from spanboost.learners.descent import (
    LEAST,
    Descent,
    Steps,
    exponential,
    more,
    normalise,
    shrink,
    widen,
)
from spanboost.learners.protocol import Feedback, Task


@dataclass(frozen=True)
class Network(Descent):
    """Two layers: `hidden` sigmoid units of all features, a linear output."""

    hidden: int = 10

    def check(self, task: Task) -> None:
        """Refuse parameters out of range."""
        super().check(task)
        whole = isinstance(self.hidden, int | np.integer) and not isinstance(self.hidden, bool)
        if not (whole and self.hidden >= 1):
            raise ValueError(f"hidden={self.hidden!r} is not allowed: a whole number of units")

    def bank(self, task: Task) -> "NetworkBank":
        """N copies, each with units of its own and an output layer of 0."""
        H, d, n = int(self.hidden), task.d, task.n
        key = mixed(mixed(np.uint64(task.seed % 2**64)) + task.copy.astype(np.uint64))

        def zeros(*shape: int) -> Array:
            return np.zeros(shape, self.dtype)

        units = zeros(1 + H, n)
        units[0] = 1
        return NetworkBank(
            W=zeros(0, H * n),
            G=zeros(0, H * n),
            V=zeros(d, 1 + H, n),
            G_out=zeros(d, 1 + H, n) + np.dtype(self.dtype).type(LEAST),
            key=np.tile(key, H) + np.repeat(np.arange(H, dtype=np.uint64) << 40, n),
            S=zeros(0),
            D=np.dtype(self.dtype).type(task.D),
            seen=np.zeros(2),
            steps=self.steps(task),
            scratch=NetworkScratch(
                unit=units,
                raw=zeros(d, n),
                slope=zeros(d, n),
                back=zeros(H, n),
                rate=zeros(0, H * n),
                rate_out=zeros(d, 1 + H, n),
                reach=zeros(H, n),
                moved=zeros(3, n),
            ),
        )


class NetworkScratch(NamedTuple):
    """What a round leaves for its update."""

    unit: Array  # [1 + H, N] what the units said
    raw: Array  # [d, N] what was predicted, before it was cut to norm D
    slope: Array  # [d, N] of the losses there
    back: Array  # [H, N] slopes of the units' sums a
    rate: Array  # [width, lane] how far each weight steps along its gradient
    rate_out: Array  # [d, 1 + H, N] likewise the output layer
    reach: Array  # [H, N] how far a unit of slope moves the units' sums
    moved: Array  # [3, N] all outputs, by the whole step


@kernel
class NetworkBank(NamedTuple):
    """N networks; lane j N + i is unit j of copy i, and unit 0 of the output layer is constant."""

    W: Array  # [feature, lane] weights of the normalised features
    G: Array  # [feature, lane] summed squared gradients
    V: Array  # [d, 1 + H, N] the output layer
    G_out: Array  # [d, 1 + H, N] summed squared gradients
    key: Array  # [lane] where the numbers come from that W starts at
    S: Array  # [feature] largest |x| seen
    D: float  # bound of the functions under linear feedback
    seen: Array  # [2] rows learned, and the sum of z^2 in them
    steps: Steps
    scratch: NetworkScratch

    def grown(self, features: int, width: int) -> "NetworkBank":
        """The same functions, with room for more features and wider rows."""
        W = more(self.W, features)
        for f in range(len(self.W), len(W)):
            W[f] = start(self.key, f)
        return self._replace(
            W=W,
            G=more(self.G, features, LEAST),
            S=more(self.S, features),
            scratch=self.scratch._replace(rate=more(self.scratch.rate, width)),
        )

    def rescale(self, a: float, b: float) -> None:
        """In wider units: functions times a, slopes times b, those of the units times a b."""
        np.multiply(self.V, a, out=self.V)
        shrink(self.G_out, b * b)
        shrink(self.G, (a * b) ** 2)

    def predict(self, x: Row, h: Array) -> None:
        """Units first, then outputs, for all copies at once."""
        normalise(self.S, x)
        lanes = self.scratch.unit[1:].reshape(-1)
        lanes.fill(0)
        for a in range(x.feature.shape[0]):
            z = x.z[a]
            if z != 0:
                W = self.W[x.feature[a]]
                for i in range(lanes.shape[0]):
                    lanes[i] += W[i] * z
        for i in range(lanes.shape[0]):
            lanes[i] = sigmoid(lanes[i], lanes)
        h.fill(0)
        for k in range(h.shape[0]):
            out, raw = h[k], self.scratch.raw[k]
            for j in range(self.scratch.unit.shape[0]):
                V, s = self.V[k, j], self.scratch.unit[j]
                for i in range(out.shape[0]):
                    out[i] += V[i] * s[i]
            for i in range(out.shape[0]):
                raw[i] = out[i]

    def update(self, x: Row, h: Array, feedback: Feedback) -> None:
        """One step of every copy."""
        feedback.slopes(self.scratch.raw, self.scratch.slope)
        self.propagate()
        pace = self.measure(x, feedback.weight)
        pace_out = self.steps.pace(1.0, self.scratch.unit.shape[0])
        self.measure_outputs(feedback.weight, pace, pace_out)
        size = self.scratch.moved[0]
        for i in range(size.shape[0]):
            size[i] = self.steps.size(
                i, size.dtype.type(1), feedback.weight, self.scratch.moved[2, i]
            )
        self.step_inputs(x, pace)
        self.step_outputs(pace_out)
        feedback.restrain(self, 0)

    def propagate(self) -> None:
        """back = slopes of the units' sums: (1 - s^2) / 2 times what the outputs pass back."""
        one, half = self.scratch.slope.dtype.type(1), self.scratch.slope.dtype.type(0.5)
        for j in range(self.scratch.back.shape[0]):
            back, s = self.scratch.back[j], self.scratch.unit[1 + j]
            back.fill(0)
            for k in range(self.scratch.slope.shape[0]):
                slope, V = self.scratch.slope[k], self.V[k, 1 + j]
                for i in range(back.shape[0]):
                    back[i] += slope[i] * V[i]
            for i in range(back.shape[0]):
                back[i] *= (one - s[i] * s[i]) * half

    def measure(self, x: Row, weight: float) -> float:
        """Learn scales and squared gradients of the units: their steps, and their reach."""
        back, reach = self.scratch.back.reshape(-1), self.scratch.reach.reshape(-1)
        least = back.dtype.type(LEAST)
        reach.fill(0)
        self.seen[0] += weight
        for a in range(x.feature.shape[0]):
            G = self.G[x.feature[a]]
            part = widen(self.S, x, a)
            if part < 1:
                for i in range(G.shape[0]):
                    G[i] = max(G[i] * part * part, least)
            square = x.z[a] * x.z[a]
            self.seen[1] += weight * square
            self.steps.gather(G, back, square, weight, self.seen[0], self.scratch.rate[a], reach)
        return self.steps.pace(self.seen[0], self.seen[1])

    def measure_outputs(self, weight: float, pace: float, pace_out: float) -> None:
        """Likewise the output layer; then reach = |movement|^2 / (slope . movement)."""
        one, half = self.scratch.slope.dtype.type(1), self.scratch.slope.dtype.type(0.5)
        along, square, reach = self.scratch.moved[0], self.scratch.moved[1], self.scratch.moved[2]
        along.fill(0)
        square.fill(0)
        for k in range(self.scratch.slope.shape[0]):
            slope = self.scratch.slope[k]
            reach.fill(0)
            for j in range(self.scratch.unit.shape[0]):
                self.gather_output(k, j, weight)
            for i in range(reach.shape[0]):
                reach[i] *= pace_out * slope[i]
            for j in range(self.scratch.back.shape[0]):
                V, s, back, far = (
                    self.V[k, 1 + j],
                    self.scratch.unit[1 + j],
                    self.scratch.back[j],
                    self.scratch.reach[j],
                )
                for i in range(reach.shape[0]):
                    bend = (one - s[i] * s[i]) * half
                    reach[i] += pace * (V[i] * bend * back[i] * far[i])
            for i in range(reach.shape[0]):
                along[i] += slope[i] * reach[i]
                square[i] += reach[i] * reach[i]
        for i in range(reach.shape[0]):
            reach[i] = square[i] / along[i] if along[i] > 0 else along.dtype.type(0)

    def gather_output(self, k: int, j: int, weight: float) -> None:
        """As `Steps.gather`, for the weight of unit j in output k, an input of each copy's own."""
        G, rate, s = self.G_out[k, j], self.scratch.rate_out[k, j], self.scratch.unit[j]
        slope, reach = self.scratch.slope[k], self.scratch.moved[2]
        if self.steps.decay < 0:
            one = G.dtype.type(1)
            for i in range(s.shape[0]):
                gradient = slope[i] * s[i]
                G[i] += gradient * (gradient / weight)
                rate[i] = one / np.sqrt(G[i])
        else:
            rate.fill(math.pow(self.seen[0], -self.steps.decay))
        for i in range(s.shape[0]):
            reach[i] += s[i] * s[i] * rate[i]

    def step_inputs(self, x: Row, pace: float) -> None:
        """One step of the units' weights."""
        for j in range(self.scratch.back.shape[0]):
            back, size = self.scratch.back[j], self.scratch.moved[0]
            for i in range(back.shape[0]):
                back[i] *= size[i] * pace
        step = self.scratch.back.reshape(-1)
        for a in range(x.feature.shape[0]):
            z, W, rate = x.z[a], self.W[x.feature[a]], self.scratch.rate[a]
            for i in range(step.shape[0]):
                W[i] -= step[i] * z * rate[i]

    def step_outputs(self, pace_out: float) -> None:
        """One step of the output layer."""
        for k in range(self.scratch.slope.shape[0]):
            slope, size = self.scratch.slope[k], self.scratch.moved[0]
            for i in range(slope.shape[0]):
                slope[i] *= size[i] * pace_out
            for j in range(self.scratch.unit.shape[0]):
                V, s, rate = self.V[k, j], self.scratch.unit[j], self.scratch.rate_out[k, j]
                for i in range(slope.shape[0]):
                    V[i] -= slope[i] * s[i] * rate[i]

    def hold(self, f: int) -> None:
        """Shrink the output layers of copies whose functions could exceed D."""
        for i in range(self.scratch.slope.shape[1]):
            size = np.float64(0)
            for j in range(self.V.shape[1]):
                square = np.float64(0)
                for k in range(self.V.shape[0]):
                    square += np.float64(self.V[k, j, i]) * np.float64(self.V[k, j, i])
                size += np.sqrt(square)
            if size > self.D:
                part = self.scratch.slope.dtype.type(self.D / size)
                for k in range(self.V.shape[0]):
                    for j in range(self.V.shape[1]):
                        self.V[k, j, i] *= part


@kernel
def sigmoid(a: float, like: Array) -> float:
    """tanh(a / 2)."""
    one = like.dtype.type(1)
    e = exponential(abs(a), like)
    s = (e - one) / (e + one)
    return s if a > 0 else -s


def start(key: Array, f: int) -> Array:
    """Numbers in (-1, 1) for feature f, one a lane."""
    bits = mixed(key + mixed(np.uint64(f)))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-52 - (1 - 2.0**-53)


def mixed(bits: Any) -> Any:
    """64 bits scrambled (the finaliser of G. Steele, D. Lea, C. Flood's SplitMix, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))
