"""A jitted step in plain JAX, timed by hand with ``block_until_ready`` every ten steps."""

import json
import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import outpace

EVERY = 10


def main() -> None:
    keys = jax.random.split(jax.random.key(0), 4)
    layers = [jax.random.normal(key, (512, 512)) / 512**0.5 for key in keys]
    rows = jax.random.normal(keys[0], (256, 512))

    @jax.jit
    def step(layers, rows):
        def loss(layers):
            out = rows
            for layer in layers:
                out = jnp.tanh(out @ layer)
            return jnp.mean((out - rows) ** 2)

        value, slopes = jax.value_and_grad(loss)(layers)
        return [layer - 0.01 * slope for layer, slope in zip(layers, slopes, strict=True)], value

    layers, _ = jax.block_until_ready(step(layers, rows))
    ends = [time.perf_counter()]
    try:
        for _ in range(int(sys.argv[1]) // EVERY):
            for _ in range(EVERY):
                layers, value = step(layers, rows)
                outpace.step(samples=256, loss=value)
            jax.block_until_ready(layers)
            before, now = ends[-1], time.perf_counter()
            ends += [before + (now - before) * (index + 1) / EVERY for index in range(EVERY)]
    finally:
        Path(os.environ["HAND_OUT"]).write_text(json.dumps({"ends": ends, "now": time.time()}))


if __name__ == "__main__":
    main()
