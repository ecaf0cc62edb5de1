"""Slow reference versions of the paper's listings, with lists and floats and no library code.

A prediction is a list of d floats. A copy is any object with `predict(x) -> list` and
`update(x, loss)`, where `loss` has `value(h)`, `slope(h)` and `weight`. A stream is a list of
`(x, label)` or `(x, label, weight)`.
"""

import math

# --------------------------------------------------------------------------------------------
# Vectors


def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


def norm(a):
    return math.sqrt(dot(a, a))


def times(c, a):
    return [c * p for p in a]


def add(a, b):
    return [p + q for p, q in zip(a, b, strict=True)]


def project(y, radius):
    """Return the point of the Euclidean ball of this radius nearest to y."""
    length = norm(y)
    if length <= radius:
        return list(y)
    return [p * (radius / length) for p in y]


# --------------------------------------------------------------------------------------------
# Losses. Labels lie in [-1, 1] (or the unit ball, or are +-1, or class numbers).


class PNorm:
    """Example 2 of the section on parameters: |y* - y|^p."""

    smooth = True

    def __init__(self, p):
        self.p = p

    def value(self, label, y):
        return abs(label - y[0]) ** self.p

    def gradient(self, label, y):
        gap = y[0] - label
        return [self.p * abs(gap) ** (self.p - 1) * (1.0 if gap > 0 else -1.0)]

    def L(self, b):
        return self.p * (b + 1.0) ** (self.p - 1)

    def beta(self, b):
        return self.p * (self.p - 1) * (b + 1.0) ** (self.p - 2)

    def eps(self, b):
        return self.p * (1.0 - b) ** (self.p - 1) if b < 1.0 else 0.0


class Squared(PNorm):
    """(y* - y)^2, the 2-norm loss."""

    def __init__(self):
        super().__init__(2)

    def gradient(self, label, y):
        return [2.0 * (y[0] - label)]


class Linear:
    """Example 1: -y* y."""

    smooth = True

    def value(self, label, y):
        return -label * y[0]

    def gradient(self, label, y):
        return [-label]

    def L(self, b):
        return 1.0

    def beta(self, b):
        return 0.0

    def eps(self, b):
        return 1.0


class ModifiedLeastSquares:
    """Example 3: max(1 - y* y, 0)^2 / 2."""

    smooth = True

    def value(self, label, y):
        return 0.5 * max(1.0 - label * y[0], 0.0) ** 2

    def gradient(self, label, y):
        return [-label * max(1.0 - label * y[0], 0.0)]

    def L(self, b):
        return b + 1.0

    def beta(self, b):
        return 1.0

    def eps(self, b):
        return max(1.0 - b, 0.0)


class Logistic:
    """Example 4: ln(1 + exp(-y* y))."""

    smooth = True

    def value(self, label, y):
        return math.log1p(math.exp(-label * y[0]))

    def gradient(self, label, y):
        return [-label / (1.0 + math.exp(label * y[0]))]

    def L(self, b):
        return math.exp(b) / (1.0 + math.exp(b))

    def beta(self, b):
        return 0.25

    def eps(self, b):
        return math.exp(-b) / (1.0 + math.exp(-b))


class Absolute:
    """|y* - y|: convex and 1-Lipschitz, not smooth."""

    smooth = False

    def value(self, label, y):
        return abs(label - y[0])

    def gradient(self, label, y):
        if y[0] == label:
            return [0.0]
        return [1.0 if y[0] > label else -1.0]

    def L(self, b):
        return 1.0


class SquaredEuclidean:
    """||y* - y||^2 in R^d, labels in the unit ball."""

    smooth = True

    def value(self, label, y):
        return sum((p - q) ** 2 for p, q in zip(y, label, strict=True))

    def gradient(self, label, y):
        return [2.0 * (p - q) for p, q in zip(y, label, strict=True)]

    def L(self, b):
        return 2.0 * (b + 1.0)

    def beta(self, b):
        return 2.0

    def eps(self, b):
        return max(2.0 * (1.0 - b), 0.0)


class Softmax:
    """Cross-entropy of softmax(y) in R^K, label = class number; its constants are passed in."""

    smooth = True

    def __init__(self, L):
        self._L = L

    def value(self, label, y):
        return math.log(sum(math.exp(p) for p in y)) - y[label]

    def gradient(self, label, y):
        total = sum(math.exp(p) for p in y)
        return [math.exp(p) / total - (1.0 if k == label else 0.0) for k, p in enumerate(y)]

    def L(self, b):
        return self._L(b)


def radius(loss, eta, N, D):
    """Line 1: B = min{eta N D, inf{b >= D: eta beta_b b^2 >= eps_b D}}.

    For losses that are not smooth, B is that of corollary 1. For every loss above the set is an
    interval [b, inf), because beta_b b^2 never falls and eps_b never rises, so bisection finds b.
    """
    most = eta * N * D
    if not loss.smooth:
        return most

    def inside(b):
        return eta * loss.beta(b) * b * b >= loss.eps(b) * D

    if inside(D):
        return min(most, D)
    if most <= D or not inside(most):
        return most
    low, high = D, most
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return high
        low, high = (low, middle) if inside(middle) else (middle, high)


# --------------------------------------------------------------------------------------------
# The losses of a copy


class LinearLoss:
    """The function h -> g . h."""

    def __init__(self, g, weight=1.0):
        self.g, self.weight = list(g), weight

    def value(self, h):
        return dot(self.g, h)

    def slope(self, h):
        return list(self.g)


class GreedyLoss:
    """The function h -> w * loss(offset + a h)."""

    def __init__(self, loss, label, offset, a, w):
        self.loss, self.label, self.offset, self.a, self.weight = loss, label, list(offset), a, w

    def value(self, h):
        return self.weight * self.loss.value(self.label, add(self.offset, times(self.a, h)))

    def slope(self, h):
        at = add(self.offset, times(self.a, h))
        return times(self.weight * self.a, self.loss.gradient(self.label, at))


def _rows(stream):
    return [row if len(row) == 3 else (*row, 1.0) for row in stream]


# --------------------------------------------------------------------------------------------
# The listings


def span(
    copies,
    stream,
    loss,
    *,
    d,
    D,
    eta,
    feedback="linear",
    scale=1.0,
    offset="printed",
    alpha=None,
    B=None,
):
    """Run Algorithm 1; return predictions, sigma after every row, and all partial sums."""
    N = len(copies)
    reach = scale * D  # the norm of scale * A(x) is at most this
    if B is None:
        B = radius(loss, eta, N, reach)
    L_B = loss.L(B)
    at_the_end = feedback == "linear" and not loss.smooth
    sigma = [0.0] * N
    t = 0
    predictions, sigmas, sums = [], [], []
    for x, label, w in _rows(stream):
        y = [[0.0] * d]
        for i in range(N):
            h = times(scale, project(copies[i].predict(x), D))
            y.append(project(add(times(1.0 - sigma[i] * eta, y[i]), times(eta, h)), B))
        predictions.append(y[N])
        sums.append(y)
        if w != 0:
            t += 1
            alpha_t = 1.0 / (L_B * B * math.sqrt(t))
            for i in range(N):
                gradient = times(w, loss.gradient(label, y[N] if at_the_end else y[i]))
                if feedback == "linear":
                    copies[i].update(x, LinearLoss(times(1.0 / L_B, gradient), w))
                else:
                    start = y[i] if offset == "printed" else times(1.0 - sigma[i] * eta, y[i])
                    step = (eta if alpha is None else alpha) * scale
                    copies[i].update(x, GreedyLoss(loss, label, start, step, w))
                sigma[i] = max(min(sigma[i] + alpha_t * dot(gradient, y[i]), 1.0), 0.0)
        sigmas.append(list(sigma))
    return predictions, sigmas, sums


def hull(copies, stream, loss, *, d, D, feedback="linear", scale=1.0, offset="printed", alpha=None):
    """Run Algorithm 2; return predictions and all partial sums."""
    N = len(copies)
    eta = [2.0 / (i + 1.0) for i in range(1, N + 1)]
    L_D = loss.L(scale * D)
    at_the_end = feedback == "linear" and not loss.smooth
    predictions, sums = [], []
    for x, label, w in _rows(stream):
        y = [[0.0] * d]
        for i in range(N):
            h = times(scale, project(copies[i].predict(x), D))
            y.append(add(times(1.0 - eta[i], y[i]), times(eta[i], h)))
        predictions.append(y[N])
        sums.append(y)
        if w != 0:
            for i in range(N):
                if feedback == "linear":
                    gradient = times(w, loss.gradient(label, y[N] if at_the_end else y[i]))
                    copies[i].update(x, LinearLoss(times(1.0 / L_D, gradient), w))
                else:
                    start = y[i] if offset == "printed" else times(1.0 - eta[i], y[i])
                    step = (eta[i] if alpha is None else alpha) * scale
                    copies[i].update(x, GreedyLoss(loss, label, start, step, w))
    return predictions, sums


def lipschitz_span(loss, i, *, N, D, eta, feedback, scale=1.0, alpha=None, B=None):
    """Return the Lipschitz constant of the losses of copy i >= 1 of Algorithm 1, at weight 1."""
    if feedback == "linear":
        return 1.0
    if B is None:
        B = radius(loss, eta, N, scale * D)
    step = (eta if alpha is None else alpha) * scale
    return step * loss.L(B + step * D)


def lipschitz_hull(loss, i, *, D, feedback, scale=1.0, alpha=None):
    """Return the same for copy i >= 1 of Algorithm 2."""
    if feedback == "linear":
        return 1.0
    step = (2.0 / (i + 1.0) if alpha is None else alpha) * scale
    return step * loss.L(scale * D + step * D)


def curvature_span(loss, i, *, N, D, eta, feedback, scale=1.0, alpha=None, B=None):
    """Return the curvature of the losses of copy i >= 1 of Algorithm 1; 0 for a kink."""
    if feedback == "linear" or not loss.smooth:
        return 0.0
    if B is None:
        B = radius(loss, eta, N, scale * D)
    return ((eta if alpha is None else alpha) * scale) ** 2 * loss.beta(B)


def curvature_hull(loss, i, *, D, feedback, scale=1.0, alpha=None):
    """Return the same for copy i >= 1 of Algorithm 2."""
    if feedback == "linear" or not loss.smooth:
        return 0.0
    step = 2.0 / (i + 1.0) if alpha is None else alpha
    return (step * scale) ** 2 * loss.beta(scale * D)


# --------------------------------------------------------------------------------------------
# Single copies


class Hedge:
    """Hedge over M functions, predicting with the mixture."""

    def __init__(self, functions, D, L=1.0):
        self.functions = functions
        self.spread = 2.0 * D * L
        self.t = 1
        self.total = [0.0] * len(functions)

    def weights(self):
        M = len(self.functions)
        rate = math.sqrt(8.0 * math.log(M) / self.t) / self.spread
        least = min(self.total)
        w = [math.exp(-rate * (total - least)) for total in self.total]
        return [p / sum(w) for p in w]

    def predict(self, x):
        outputs = [f(x) for f in self.functions]
        mixture = [0.0] * len(outputs[0])
        for p, output in zip(self.weights(), outputs, strict=True):
            mixture = add(mixture, times(p, output))
        return mixture

    def update(self, x, loss):
        for m, f in enumerate(self.functions):
            self.total[m] += loss.value(f(x))
        self.t += 1


class LinearOGD:
    """Projected online gradient descent over matrices W, predicting W x."""

    def __init__(self, d, features, D, x_norm, L=1.0):
        self.G = D / x_norm
        self.x_norm = x_norm
        self.L = L
        self.t = 1
        self.W = [[0.0] * features for _ in range(d)]

    @staticmethod
    def present(x):
        return [0.0 if math.isnan(p) else float(p) for p in x]

    def predict(self, x):
        x = self.present(x)
        return [dot(row, x) for row in self.W]

    def update(self, x, loss):
        slope = loss.slope(self.predict(x))
        x = self.present(x)
        step = math.sqrt(2.0) * self.G / (self.x_norm * self.L * math.sqrt(self.t))
        for k, row in enumerate(self.W):
            for j in range(len(row)):
                row[j] -= step * slope[k] * x[j]
        length = math.sqrt(sum(p * p for row in self.W for p in row))
        if length > self.G:
            self.W = [[p * (self.G / length) for p in row] for row in self.W]
        self.t += 1


class Negated:
    """The function h -> -loss(h), for linear losses."""

    def __init__(self, loss):
        self.loss = loss

    def value(self, h):
        return -self.loss.value(h)

    def slope(self, h):
        return times(-1.0, self.loss.slope(h))


class Symmetriser:
    """The paper's footnote: Hedge over a copy that learns the losses, and a negated copy."""

    def __init__(self, make, D):
        self.plus, self.minus = make(), make()
        self.spread = 2.0 * D
        self.t = 1
        self.total = [0.0, 0.0]

    def weights(self):
        rate = math.sqrt(8.0 * math.log(2.0) / self.t) / self.spread
        least = min(self.total)
        w = [math.exp(-rate * (total - least)) for total in self.total]
        return [p / sum(w) for p in w]

    def predict(self, x):
        p, q = self.weights()
        return add(times(p, self.plus.predict(x)), times(-q, self.minus.predict(x)))

    def update(self, x, loss):
        self.total[0] += loss.value(self.plus.predict(x))
        self.total[1] += loss.value(times(-1.0, self.minus.predict(x)))
        self.plus.update(x, loss)
        self.minus.update(x, Negated(loss))
        self.t += 1


class SGD:
    """Plain gradient descent on a linear function with a constant, d = 1."""

    def __init__(self, features, rate=0.1):
        self.w = [0.0] * features
        self.bias = 0.0
        self.rate = rate

    def predict(self, x):
        return [dot(self.w, list(map(float, x))) + self.bias]

    def update(self, x, loss):
        step = self.rate * loss.slope(self.predict(x))[0]
        self.w = [p - step * float(q) for p, q in zip(self.w, x, strict=True)]
        self.bias -= step
