"""How much of the work of a matrix product is for nothing: edges of tiles, the last wave, a short
contraction."""

from __future__ import annotations

import functools
import math

#: Tiles that libraries of matrix kernels choose among, with the share of the best rate that each can reach:
#: a small tile reads its operands more often (the trade-off of CUTLASS's and cuBLAS's kernel tables).
_TILES = {
    "vector": (
        (128, 128, 1.0),
        (64, 128, 0.95),
        (128, 64, 0.95),
        (64, 64, 0.88),
        (32, 64, 0.75),
        (32, 32, 0.6),
    ),
    "matrix": (
        (256, 128, 1.0),
        (128, 256, 1.0),
        (128, 128, 0.95),
        (64, 128, 0.85),
        (128, 64, 0.85),
        (64, 64, 0.7),
        (32, 64, 0.5),
        (32, 32, 0.35),
    ),
}
#: A contraction of this length reaches half of the rate: filling and draining the pipeline.
_HALF_DEPTH = {"vector": 12.0, "matrix": 48.0}


@functools.lru_cache(maxsize=65536)
def waste(m: int, n: int, k: int, batch: int, units: int, kind: str) -> float:
    """How many times the plain arithmetic an (m x k) by (k x n) product costs, *batch* times; at least 1.

    Args:
        units: multiprocessors (compute units) of the card, each of which computes a tile at a time.
        kind: ``vector`` or ``matrix`` units.
    """
    if min(m, n, k, batch) <= 0:
        return 1.0
    best = math.inf
    for rows, columns, share in _TILES[kind]:
        tiles = math.ceil(m / rows) * math.ceil(n / columns) * batch
        padded = tiles * rows * columns / (m * n * batch)
        # a split contraction fills units that have no tile of their own
        split = max(1, min(units // tiles, k // 512)) if tiles < units else 1
        waves = tiles * split / units
        best = min(best, padded * _last_wave(waves) / share)
    return best * (1 + _HALF_DEPTH[kind] / k)


def _last_wave(waves: float) -> float:
    """Time of whole waves over that of *waves*; several tiles share a multiprocessor, which softens it."""
    if waves <= 1:
        return 1 / waves
    whole = math.ceil(waves)
    return 1 + (whole / waves - 1) * 0.5
