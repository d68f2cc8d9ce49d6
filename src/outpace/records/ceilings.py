"""What a device can do at best."""

from __future__ import annotations

import msgspec


class Ceilings(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="ceilings"):
    """The limits of a device, from its datasheet or measured."""

    version: int = 1
    device: str
    """``cpu``, ``cuda:0`` …, or the name of a card."""
    source: str
    measured: bool
    matrix_flops_per_second: dict[str, float] = {}
    """Matrix products and convolutions, by dtype; dense."""
    vector_flops_per_second: dict[str, float] = {}
    """Everything else."""
    bandwidths: list[tuple[int, float]] = []
    """(bytes that an operator touches, bytes per second read and written), ascending."""
    cache_bytes: int | None = None
    """An operator that touches less may never leave the cache: memory is no limit to it."""
    launch_seconds: float | None = None
    """The least time from one operator call to the next."""
