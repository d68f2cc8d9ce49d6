"""Plain JAX: a compiled step, told to outpace in one line."""

import jax
import jax.numpy as jnp
import numpy as np

import outpace

x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
y = x.sum(1)


@jax.jit
def step(weights, rows, wanted):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((rows @ w - wanted) ** 2))(weights)
    return weights - 0.1 * slope, loss


weights, losses = jnp.zeros(4), []
for _ in range(5):
    for start in range(0, 64, 24):
        rows, wanted = x[start : start + 24], y[start : start + 24]
        weights, loss = step(weights, rows, wanted)
        outpace.step(samples=len(rows), loss=loss)
        losses.append(loss)
outpace.log(error=losses[-1])
print("LOSSES plain", *map(float, losses))
print("WEIGHTS", weights.tolist())
