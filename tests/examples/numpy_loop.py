"""A perceptron in NumPy, told to outpace in one line."""

import numpy as np

import outpace

x = np.random.default_rng(0).normal(size=(40, 3))
y = x.sum(1)
weights = np.zeros(3)
for start in range(0, 40, 16):
    rows, wanted = x[start : start + 16], y[start : start + 16]
    off = rows @ weights - wanted
    weights -= 0.1 * rows.T @ off / len(rows)
    outpace.step(samples=len(rows), loss=(off**2).mean())
