"""Small pieces of work for a device, to measure what it can do at best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from outpace import host
from outpace.observe.jax import id_of, memory_stats

DTYPES = {"fp32": jnp.float32, "tf32": jnp.float32, "bf16": jnp.bfloat16, "fp16": jnp.float16}


class Work:
    """See `outpace.ceilings.Bench`."""

    def __init__(self, device: str) -> None:
        self.name = f"jax {jax.__version__}"
        found = [*jax.local_devices(), *jax.local_devices(backend="cpu")]
        self._device = next(one for one in found if id_of(one) == device)
        self.dtypes: tuple[str, ...] = ("fp32", "bf16", "fp16")
        if device.startswith("cuda"):
            self.dtypes = ("fp32", "tf32", "bf16", "fp16")
        self.memory_bytes = memory_stats(self._device).get("bytes_limit") or host.memory_bytes()
        self._latest: Any = None

    def product(self, dtype: str, size: int) -> Callable[[], object]:
        """A product of two square matrices."""
        precision = jax.lax.Precision.DEFAULT if dtype == "tf32" else jax.lax.Precision.HIGHEST
        a = jax.device_put(jnp.ones((size, size), DTYPES[dtype]), self._device)
        run = jax.jit(lambda a, b: jax.lax.dot(a, b, precision=precision))
        return lambda: self._keep(run(a, a))

    def copy(self, size_bytes: int) -> Callable[[], object]:
        """Reads half of *size_bytes* and writes the other half."""
        a = jax.device_put(jnp.zeros(size_bytes // 8, jnp.float32), self._device)
        run = jax.jit(lambda a: a + 1)
        return lambda: self._keep(run(a))

    def tiny(self) -> Callable[[], object]:
        """The smallest operator."""
        return self.copy(8)

    def wait(self) -> None:
        """Until the device is through."""
        jax.block_until_ready(self._latest)  # type: ignore[no-untyped-call]

    def _keep(self, result: Any) -> None:
        self._latest = result
