"""What a device can do at best: from the datasheet, or by a short measurement that is kept per machine."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec
import platformdirs

from outpace.errors import OutpaceError
from outpace.records import Card, Ceilings, read, to_json, write_atomically
from outpace.units import GIB, KIB, MIB

#: A product is enlarged until it takes this long.
PRODUCT_SECONDS = 0.03
LARGEST_PRODUCT = 8192
COPY_BYTES = (64 * KIB, 512 * KIB, 4 * MIB, 32 * MIB, 256 * MIB)
REPEATS = 5
#: Longer than this no single turn is repeated.
TURNS_SECONDS = 0.25


class Bench(Protocol):
    """What an observer offers to have its device measured. The functions start work and do not wait."""

    name: str
    """The framework and its version."""
    dtypes: tuple[str, ...]
    memory_bytes: int | None

    def product(self, dtype: str, size: int) -> Callable[[], object]:
        """A product of two square matrices."""

    def copy(self, size_bytes: int) -> Callable[[], object]:
        """Reads half of *size_bytes* and writes the other half."""

    def tiny(self) -> Callable[[], object]:
        """The smallest operator."""

    def wait(self) -> None:
        """Until the device is through."""


def measure(bench: Bench, *, device: str, cores: float) -> Ceilings:
    """The ceilings of *device*, in a few seconds: the best of several products per dtype and of copies.

    Args:
        bench: the device through a framework.
        cores: that may be used; part of the source line.
    """
    launch = _best_seconds(bench, bench.tiny(), calls=200)
    matrix = {dtype: rate for dtype in bench.dtypes if (rate := _best_product(bench, dtype))}
    room = (bench.memory_bytes or 16 * GIB) // 8
    bandwidths = []
    for size in (size for size in COPY_BYTES if size <= room):
        seconds = _best_seconds(bench, bench.copy(size), calls=max(1, 4 * MIB // size))
        bandwidths.append((size, size / max(seconds - launch, seconds / 2)))
    return Ceilings(
        device=device,
        source=f"measured here with {bench.name} on {cores:g} cores"
        if device == "cpu"
        else f"measured here with {bench.name}",
        measured=True,
        matrix_flops_per_second=matrix,
        vector_flops_per_second=_vectors(matrix),
        bandwidths=_falling(bandwidths),
        launch_seconds=launch,
    )


def _vectors(matrix: Mapping[str, float]) -> dict[str, float]:
    """A CPU multiplies matrices with its vector units; no other arithmetic is faster than that."""
    return {"fp32": matrix["fp32"]} if "fp32" in matrix else {}


def _falling(bandwidths: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Nothing small is slower than something large, but for noise."""
    best = 0.0
    result = []
    for size, rate in reversed(bandwidths):
        best = max(best, rate)
        result.append((size, best))
    return result[::-1]


def _best_product(bench: Bench, dtype: str) -> float | None:
    best: float | None = None
    size = 256
    while size <= LARGEST_PRODUCT:
        try:
            run = bench.product(dtype, size)
            seconds = _best_seconds(bench, run, calls=1)
        except Exception:  # this framework has no such product on this device
            return best
        best = max(best or 0.0, 2 * size**3 / seconds)
        if seconds > PRODUCT_SECONDS:
            break
        size *= 2
    return best


def _best_seconds(bench: Bench, run: Callable[[], object], *, calls: int) -> float:
    """The fastest of a few turns of *calls* calls, per call."""
    best = float("inf")
    run()
    spent = 0.0
    for _ in range(REPEATS):
        bench.wait()
        began = time.perf_counter()
        for _ in range(calls):
            run()
        bench.wait()
        seconds = time.perf_counter() - began
        best = min(best, seconds / calls)
        spent += seconds
        if spent > TURNS_SECONDS:
            break
    return best


def better(one: Ceilings, other: Ceilings) -> Ceilings:
    """The higher of two measurements of the same device: a ceiling is what can be reached at all."""

    def highest(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
        return {dtype: max(a.get(dtype, 0.0), b.get(dtype, 0.0)) for dtype in {**a, **b}}

    others = dict(other.bandwidths)
    launches = [found.launch_seconds for found in (one, other) if found.launch_seconds is not None]
    return msgspec.structs.replace(
        one,
        matrix_flops_per_second=highest(one.matrix_flops_per_second, other.matrix_flops_per_second),
        vector_flops_per_second=highest(one.vector_flops_per_second, other.vector_flops_per_second),
        bandwidths=[(size, max(rate, others.get(size, 0.0))) for size, rate in one.bandwidths],
        launch_seconds=min(launches, default=None),
    )


def of_card(card: Card) -> Ceilings:
    """The datasheet's ceilings. What is not published is absent."""
    cache = max(card.l2_bytes or 0, card.last_level_cache_bytes or 0) or None
    bandwidth = card.memory_bandwidth_bytes_per_second
    return Ceilings(
        device=card.name,
        source=f"datasheet of {card.title}, dense peaks",
        measured=False,
        matrix_flops_per_second=card.matrix_flops_per_second,
        vector_flops_per_second=card.vector_flops_per_second,
        bandwidths=[(0, bandwidth)] if bandwidth else [],
        cache_bytes=cache,
    )


def cache_path(identity: Mapping[str, str]) -> Path:
    """Where the ceilings of a device are kept, by all that they depend on (CPU, cores, threads, versions)."""
    own = os.environ.get("OUTPACE_DATA_DIR")
    folder = Path(own) / "ceilings" if own else Path(platformdirs.user_cache_dir("outpace")) / "ceilings"
    digest = hashlib.sha256(msgspec.json.encode(dict(sorted(identity.items())))).hexdigest()[:16]
    return folder / f"{digest}.json"


def cached(path: Path) -> Ceilings | None:
    """What was measured before; ``None`` where there is nothing that can be read."""
    try:
        return read(path, Ceilings) if path.exists() else None
    except OutpaceError:
        return None


def keep(path: Path, found: Ceilings) -> None:
    """Keep *found* for the next time; a cache that cannot be written costs only time."""
    try:
        write_atomically(path, to_json(found))
    except OutpaceError:
        return
