"""Slow reference versions of one copy of each feature learner, with no library code.

A row is a list of `(feature, value)`, the constant `(0, 1.0)` first (see `active`). A copy has
`predict(row) -> list` of d numbers and `update(row, loss)`, where `loss` has `slope(h) -> list`,
`value(h)` and `weight`. Its curvature, and its bound D under linear feedback, are parameters.

All numbers have one type: Python's float, or a NumPy scalar type, which then determines the
precision. The order of operations is that of the library where results are compared exactly.
"""

import math

LEAST = 1e-20  # initial value of a sum of squared gradients


def active(numbers, codes=(), bits=None):
    """Return the active features of a row: numbers but 0 and NaN, and codes >= 0."""
    stride = 2 if len(codes) else 1
    row = [(0, 1.0)]
    row += [(1 + stride * j, v) for j, v in enumerate(numbers) if v < 0 or v > 0]
    row += [(2 + 2 * (c * len(codes) + j), 1.0) for j, c in enumerate(codes) if c >= 0]
    return row if bits is None else [(f % 2**bits, v) for f, v in row]


def exact_flow(v):
    """Return (1 - exp(-v)) / v."""
    return -math.expm1(-v) / v if v else 1.0


def series_exp(v):
    """Return exp(min(v, 64)) for v >= 0: the fourth-order series at v / 16, to the power of 16."""
    one = type(v)(1)
    y = min(v, type(v)(64)) * type(v)(0.0625)
    e = one
    for term in (0.25, 1 / 3, 0.5, 1.0):
        e = one + y * type(v)(term) * e
    for _ in range(4):
        e = e * e
    return e


def series_flow(v):
    """Return (1 - exp(-v)) / v by that series."""
    one = type(v)(1)
    return (one - one / series_exp(v)) / v if v > type(v)(0.01) else one - v * type(v)(0.5)


def exact_squash(a):
    """Return tanh(a / 2), a sigmoid from -1 to 1."""
    return math.tanh(a / 2)


def series_squash(a):
    """Return tanh(a / 2) by the series."""
    e = series_exp(abs(a))
    s = (e - type(a)(1)) / (e + type(a)(1))
    return s if a > 0 else -s


def norm(vector):
    """Return the Euclidean norm, computed in double precision."""
    square = 0.0
    for v in vector:
        square += float(v) * float(v)
    return math.sqrt(square)


class Scales:
    """The scale of each feature: its largest |x|, with strays kept out and old scales dropped.

    One value is a stray if it exceeds four times the scale after 64 rows. 64 strays are believed,
    if at most four other values come between two of them. 256 values in a row below 1/512 of the
    scale set a new one; a value below 2^-16 of it counts as 8.
    """

    def __init__(self):
        self.S, self.strays, self.low, self.rows = {}, {}, {}, {}

    def meet(self, f, size, *, young):
        """Return the scale of feature f after this value, before it may fall."""
        S = self.S.get(f, 0)
        if f not in self.S and not young:
            self.rows[f] = 64  # the feature came late, so it gets its own 64 rows
        free = young or self.rows.get(f, 0) > 0
        self.rows[f] = max(self.rows.get(f, 0) - 1, 0)
        times = 8 if size < S / 2**16 else 1
        self.low[f] = [*self.low.get(f, []), *[size] * times] if size < S / 512 else []
        if free or size <= 4 * S:
            self.strays[f] = max(self.strays.get(f, 0) - 1, 0)
            return max(S, size)
        self.strays[f] = self.strays.get(f, 0) + 4
        if self.strays[f] < 256:
            return S
        self.strays[f] = 0
        return size

    def fall(self, f):
        """Return the factor by which the scale of feature f falls now."""
        if len(self.low[f]) < 256:
            return 1
        before, self.S[f] = self.S[f], max(self.low[f])
        self.low[f] = []
        return self.S[f] / before


class Copy:
    """The common part of all copies: parameters, feature scales and normalised values."""

    def __init__(
        self,
        d,
        rate,
        *,
        cut=1.0,
        curvature=0.0,
        D=math.inf,
        decay=None,
        number=float,
        flow=series_flow,
    ):
        """Store the parameters. Predictions are projected to norm `cut`; D bounds the functions."""
        self.cut = number(cut)
        self.d, self.number, self.flow, self.decay = d, number, flow, decay
        self.rate, self.curvature, self.D = number(rate), number(curvature), float(number(D))
        self.scales = Scales()
        self.S = self.scales.S

    def zeros(self, count):
        return [self.number(0)] * count

    def least(self, count):
        return [self.number(LEAST)] * count

    def project(self, p):
        """Return the point of the ball of radius `cut` nearest to p."""
        if self.d == 1:
            return [max(min(p[0], self.cut), -self.cut)]
        square = p[0] * p[0]
        for q in p[1:]:
            square += q * q
        if not square > self.cut * self.cut:
            return list(p)
        shrink = self.cut / self.number(math.sqrt(square))
        return [q * shrink for q in p]

    def slope(self, loss, p):
        """Return the slope at the projection of p, without its outward part."""
        projected = self.project(p)
        slope, largest = loss.slope(projected), max(abs(v) for v in projected)
        if list(p) == list(projected) or not largest > 0:
            return slope
        if self.d == 1:
            return self.zeros(1) if (p[0] - projected[0]) * slope[0] < 0 else slope
        out = [v / largest for v in projected]
        along, square = self.number(0), self.number(0)
        for g, o in zip(slope, out, strict=True):
            along += g * o
            square += o * o
        if along < 0:
            slope = [g - along / square * o for g, o in zip(slope, out, strict=True)]
        return slope

    def z(self, f, x):
        """Return x over the largest value seen, clipped to [-1, 1]; 0 if none was seen."""
        S = self.S.get(f, 0)
        return max(min(self.number(x), S), -S) / S if S else self.number(0)

    def update_scale(self, f, x, G, *, young):
        """Update the scale of feature f, and convert its sums of squared gradients to it."""
        S = self.S.get(f, self.number(0))
        size = self.scales.meet(f, abs(self.number(x)), young=young)
        if size > S:
            shrink = S / size
            G[:] = [max(g * shrink * shrink, self.number(LEAST)) for g in G]
            self.S[f] = size

    def lower_scale(self, f, W):
        """Lower the scale of feature f if it is due; the function stays the same."""
        shrink = self.scales.fall(f)
        W[:] = [w * shrink for w in W]

    def pace(self, ratio):
        return self.number(math.sqrt(ratio) if self.decay is None else ratio)

    def rates(self, G, slope, x, w, count):
        """Add the squared gradients of input x to G, and return the step factors of its weights."""
        if self.decay is not None:
            return [self.number(math.pow(count, -self.decay))] * len(G)
        for k in range(len(G)):
            G[k] += slope[k] * (slope[k] * (x * x / w))
        return [self.number(1) / self.number(math.sqrt(g)) for g in G]


class Linear(Copy):
    """The function sum_f U_f z_f, with sum |U| <= D."""

    def __init__(self, d, rate, **options):
        super().__init__(d, rate, **options)
        self.U, self.G = {}, {}
        self.rows = self.norms = 0.0

    def predict(self, row):
        h = self.zeros(self.d)
        for f, x in row:
            if f in self.U:
                h = [a + u * self.z(f, x) for a, u in zip(h, self.U[f], strict=True)]
        return h

    def update(self, row, loss):
        slope, w = self.slope(loss, self.predict(row)), self.number(loss.weight)
        self.rows += float(w)
        z, rates = [], []
        for f, x in row:  # one by one, because two may share a number in a hashed table
            G = self.G.setdefault(f, self.least(self.d))
            self.U.setdefault(f, self.zeros(self.d))
            self.update_scale(f, x, G, young=self.rows <= 64 * w)
            z.append(self.z(f, x))
            self.norms += float(w * (z[-1] * z[-1]))
            rates.append(self.rates(G, slope, z[-1], w, self.rows))
        u = self.rate * self.pace(self.rows / self.norms)
        for k in range(self.d):
            reach = sum((v * v * r[k] for v, r in zip(z, rates, strict=True)), self.number(0))
            size = slope[k] * (u * self.flow(self.curvature * w * u * reach))
            for (f, _), v, r in zip(row, z, rates, strict=True):
                self.U[f][k] -= size * v * r[k]
        for f, _ in row:
            self.lower_scale(f, self.U[f])
        mass = sum(abs(u) for U in self.U.values() for u in U)
        if mass > self.D:
            self.U = {f: [u * (self.D / mass) for u in U] for f, U in self.U.items()}


class Stumps(Copy):
    """One function per feature, U_f z_f (+ V_f), of which the one with the best score predicts."""

    def __init__(self, d, rate, *, intercept=False, ranking="advantage", **options):
        super().__init__(d, rate, **options)
        self.intercept, self.ranking = intercept, ranking
        self.U, self.V, self.G, self.H, self.score, self.n, self.m = {}, {}, {}, {}, {}, {}, {}

    def function(self, f, x):
        if f not in self.U:
            return self.zeros(self.d)
        p = [u * self.z(f, x) for u in self.U[f]]
        return [a + v for a, v in zip(p, self.V[f], strict=True)] if self.intercept else p

    def predict(self, row):
        best_f, best_x = row[0]
        for f, x in row:
            if self.score.get(f, 0.0) > self.score.get(best_f, 0.0):
                best_f, best_x = f, x
        return self.function(best_f, best_x)

    def update(self, row, loss):
        for f, x in row:
            if f not in self.U:
                self.U[f], self.V[f] = self.zeros(self.d), self.zeros(self.d)
                self.G[f], self.H[f] = self.least(self.d), self.least(self.d)
                self.score[f] = self.n[f] = self.m[f] = 0.0
            self.learn(f, x, loss)

    def learn(self, f, x, loss):
        U, V, G, H = self.U[f], self.V[f], self.G[f], self.H[f]
        w = self.number(loss.weight)
        self.update_scale(f, x, G, young=self.n[f] < 64 * w)
        z, p = self.z(f, x), self.function(f, x)
        projected = self.project(p)
        slope = self.slope(loss, p)
        nothing = self.zeros(self.d)
        if self.ranking == "advantage":
            self.score[f] += float(loss.value(nothing)) - float(loss.value(projected))
        else:
            self.score[f] -= float(loss.value(projected))
        self.n[f] += float(w)
        self.m[f] += float(w * (z * z))
        self.m[f] += float(w) if self.intercept else 0.0
        u = self.rate * self.pace(self.n[f] / self.m[f])
        r_U = self.rates(G, slope, z, w, self.n[f])
        r_V = self.rates(H, slope, self.number(1), w, self.n[f])
        for k in range(self.d):
            reach = z * z * r_U[k] + (r_V[k] if self.intercept else self.number(0))
            step = slope[k] * (u * self.flow(self.curvature * w * u * reach))
            U[k] -= step * z * r_U[k]
            if self.intercept:
                V[k] -= step * r_V[k]
        self.lower_scale(f, U)
        size = norm(U) + norm(V)
        if size > self.D:
            shrink = self.number(self.D / size)
            self.U[f], self.V[f] = [v * shrink for v in U], [v * shrink for v in V]


class Network(Copy):
    """One hidden layer: s_j = squash(sum_f W_fj z_f), h_k = V_k0 + sum_j V_kj s_j."""

    def __init__(self, d, rate, *, hidden, start, squash=series_squash, **options):
        """Store the parameters; start(f, j) is the first weight from feature f to unit j."""
        super().__init__(d, rate, **options)
        self.hidden, self.start, self.squash = hidden, start, squash
        self.W, self.G = {}, {}
        self.V = [self.zeros(hidden + 1) for _ in range(d)]
        self.G_out = [self.least(hidden + 1) for _ in range(d)]
        self.rows = self.norms = 0.0

    def add_feature(self, f):
        if f not in self.W:
            self.W[f] = [self.number(self.start(f, j)) for j in range(self.hidden)]
            self.G[f] = self.least(self.hidden)

    def units(self, row):
        """Return 1 for the constant, then the values of the hidden units."""
        sums = self.zeros(self.hidden)
        for f, x in row:
            if self.S.get(f, 0) > 0:
                z = self.z(f, x)
                sums = [a + w * z for a, w in zip(sums, self.W[f], strict=True)]
        return [self.number(1), *(self.squash(a) for a in sums)]

    def output(self, s):
        h = []
        for V in self.V:
            total = self.number(0)
            for v, t in zip(V, s, strict=True):
                total += v * t
            h.append(total)
        return h

    def predict(self, row):
        return self.output(self.units(row))

    def update(self, row, loss):
        w, s = self.number(loss.weight), self.units(row)
        g = self.slope(loss, self.output(s))
        J, K = range(self.hidden), range(self.d)

        # back through the units: bend_j = ds_j / da_j, e_j = dloss / da_j
        bend = [(self.number(1) - t * t) / self.number(2) for t in s[1:]]
        e = [bend[j] * sum(g[k] * self.V[k][1 + j] for k in K) for j in J]

        self.rows += float(w)
        z, r = [], []
        for f, x in row:  # one by one, because two may share a number in a hashed table
            self.add_feature(f)
            self.update_scale(f, x, self.G[f], young=self.rows <= 64 * w)
            z.append(self.z(f, x))
            self.norms += float(w * (z[-1] * z[-1]))
            r.append(self.rates(self.G[f], e, z[-1], w, self.rows))
        r_out = [self.rates(self.G_out[k], [g[k] * t for t in s], 1.0, w, self.rows) for k in K]
        pace_in = self.pace(self.rows / self.norms)
        pace_out = self.pace(1.0 / (self.hidden + 1))

        # how far a unit of rate moves each output, and the size of the step
        rho = [sum(v * v * r[a][j] for a, v in enumerate(z)) for j in J]
        m = [
            pace_out * g[k] * sum(t * t * q for t, q in zip(s, r_out[k], strict=True))
            + pace_in * sum(self.V[k][1 + j] * bend[j] * e[j] * rho[j] for j in J)
            for k in K
        ]
        q = sum(g[k] * m[k] for k in K)
        reach = sum(p * p for p in m) / q if q else self.number(0)
        size = self.rate * self.flow(self.curvature * w * self.rate * reach)

        for a, (f, _) in enumerate(row):
            for j in J:
                self.W[f][j] -= size * pace_in * e[j] * z[a] * r[a][j]
            self.lower_scale(f, self.W[f])
        for k in K:
            for j, t in enumerate(s):
                self.V[k][j] -= size * pace_out * g[k] * t * r_out[k][j]
        mass = sum(norm([V[j] for V in self.V]) for j in range(self.hidden + 1))
        if mass > self.D:
            self.V = [[v * (self.D / mass) for v in V] for V in self.V]
