"""The measured recursion, transcribed from the proofs round by round; shares no code with it."""

import numpy as np


def naive_bound(booster, r, f, W, *, at_final=False):
    """Return the terms of the bound, its total, and its exact distance from the regret.

    r: the rounds of the pass (`stages.Rounds`). f: [T, d]. W: the norm of f.
    """
    N, loss = booster.n, booster.loss_
    eta = [booster.eta_] * N if hasattr(booster, "eta_") else [2 / (i + 1) for i in range(1, N + 1)]
    terms = {name: np.zeros(N) for name in ("copies", "sigma", "curvature", "projection")}
    gaps = np.zeros(N)
    Delta_0 = 0.0
    for t, w in enumerate(r.weights):
        value, slope = functions_of(loss, r.labels[t])
        if at_final:
            value, slope = tangent(value, slope, r.y[t, N])
        Delta_0 += w * (value(r.y[t, 0]) - value(f[t]))
        for i in range(N):
            y, h, after = r.y[t, i], r.h[t, i], r.y[t, i + 1]
            sigma = r.sigma[t, i] if hasattr(booster, "eta_") else 1.0
            u = (1 - sigma * eta[i]) * y + eta[i] * h
            g = slope(y)
            terms["copies"][i] += eta[i] * w * g @ (h - f[t] / W)
            terms["sigma"][i] += eta[i] * w * (g @ y) * (1 / W - sigma)
            terms["curvature"][i] += w * (value(u) - value(y) - g @ (u - y))
            terms["projection"][i] += w * (value(after) - value(u))
            gaps[i] += eta[i] / W * w * (value(f[t]) - value(y) - g @ (f[t] - y))
    left = [np.prod([1 - eta[j] / W for j in range(i + 1, N)]) for i in range(N)]
    initial = (1 - eta[0] / W) * left[0] * Delta_0
    terms = {name: left * values for name, values in terms.items()}
    total = initial + sum(values.sum() for values in terms.values())
    return {"initial": initial} | terms, total, float(np.dot(left, gaps))


def functions_of(loss, label):
    """Return the loss and its gradient as functions of a prediction [d]."""
    if hasattr(loss, "value"):
        return (
            lambda y: loss.value(label[0], y[0]),
            lambda y: np.array([loss.gradient(label[0], y[0])]),
        )

    def value(y):
        out = np.empty(1)
        loss.values(label, y[:, None], out)
        return out[0]

    def slope(y):
        out = np.empty((len(y), 1))
        loss.gradients(label, y[:, None], out)
        return out[:, 0]

    return value, slope


def tangent(value, slope, at):
    """Return the tangent of a loss at a point, and its constant gradient."""
    start, g = value(at), slope(at)
    return (lambda y: start + g @ (y - at)), (lambda y: g)
