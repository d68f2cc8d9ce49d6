"""Times JAX without waiting for it: what it prints is how long it takes to ask for a step."""

import time

import jax
import jax.numpy as jnp

import outpace

size, batch = 1024, 512
key = jax.random.key(0)
layers = [jax.random.normal(key, (size, size)) / size**0.5 for _ in range(3)]
rows = jax.random.normal(key, (batch, size))


@jax.jit
def step(layers, rows):
    def loss(layers):
        out = rows
        for layer in layers:
            out = jnp.tanh(out @ layer)
        return jnp.mean((out - rows) ** 2)

    value, slopes = jax.value_and_grad(loss)(layers)
    return [layer - 0.01 * slope for layer, slope in zip(layers, slopes)], value


layers, _ = step(layers, rows)  # compile
for _ in range(2000):
    began = time.perf_counter()
    layers, value = step(layers, rows)
    print(f"{(time.perf_counter() - began) * 1e3:.3f} ms per step", flush=True)
    outpace.step(samples=batch, loss=value)
