"""Reads ``cards.toml``: figures in the units that datasheets print become SI cards."""

from __future__ import annotations

import functools
import sys
from importlib import resources
from typing import Any

import msgspec

from outpace.records import Card
from outpace.units import GIB, GIGA, MEGA, MIB, TERA

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILES = ("cards.toml", "_other.toml")
FACT_GROUPS = ("compute", "memory", "power", "links", "names")


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A vendor's document: its title and its date (``2021`` or ``2021-06``)."""

    title: str
    date: str

    def __str__(self) -> str:
        return f"{self.title}, {self.date}"


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: str
    vendor: str
    kind: str = "gpu"
    architecture: str
    year: int
    process_nm: float | None = None
    units: int | None = None
    vector_cores: int | None = None
    clock_base_mhz: float | None = None
    clock_boost_mhz: float | None = None
    memory_kind: str | None = None
    memory_gib: float | None = None
    memory_gb_per_second: float | None = None
    memory_bus_bits: int | None = None
    memory_gbit_per_pin: float | None = None
    l2_mib: float | None = None
    last_level_cache_mib: float | None = None
    matrix_tflops: dict[str, float] = {}
    vector_tflops: dict[str, float] = {}
    board_watts: float | None = None
    board_watts_range: tuple[float, float] | None = None
    host_link: str | None = None
    host_gb_per_second: float | None = None
    peer_link: str | None = None
    peer_gb_per_second: float | None = None
    toolkit: str | None = None
    driver_names: tuple[str, ...] = ()
    halved_from_sparse: tuple[str, ...] = ()
    note: str | None = None
    source: dict[str, str] = {}


@functools.cache
def load() -> dict[str, Card]:
    """Every card of the table, by name, in the order of the file. Shared: do not change it."""
    sources, rows = _read()
    return {name: _card(name, row, sources) for name, row in rows.items()}


def select(
    *, vendor: str | None = None, memory_at_least: int | None = None, since: int | None = None
) -> list[Card]:
    """Cards of one vendor, with at least so many bytes of memory, launched in that year or later.

    A card whose memory size is not in the table does not pass a limit on memory.
    """
    return [
        card
        for card in load().values()
        if (vendor is None or card.vendor == vendor.casefold())
        and (memory_at_least is None or (card.memory_bytes or 0) >= memory_at_least)
        and (since is None or card.year >= since)
    ]


def _read() -> tuple[dict[str, Source], dict[str, _Row]]:
    sources: dict[str, Source] = {}
    rows: dict[str, _Row] = {}
    for file in FILES:
        path = resources.files("outpace.cards") / file
        if not path.is_file():
            continue
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        parts = ((sources, "sources", Source), (rows, "cards", _Row))
        for into, key, kind in parts:
            found = msgspec.convert(content.get(key, {}), dict[str, kind])  # type: ignore[valid-type]
            assert not into.keys() & found.keys(), f"{file} repeats {sorted(into.keys() & found.keys())}"
            into.update(found)
    return sources, rows


def _card(name: str, row: _Row, sources: dict[str, Source]) -> Card:
    assert row.source.keys() <= set(FACT_GROUPS), f"{name}: unknown fact group in {sorted(row.source)}"
    low_high = row.board_watts_range
    return Card(
        name=name,
        title=row.title,
        vendor=row.vendor,
        architecture=row.architecture,
        year=row.year,
        kind=row.kind,
        process_nm=row.process_nm,
        units=row.units,
        vector_cores=row.vector_cores,
        clock_base_hertz=_scaled(row.clock_base_mhz, MEGA),
        clock_boost_hertz=_scaled(row.clock_boost_mhz, MEGA),
        memory_kind=row.memory_kind,
        memory_bytes=_whole(row.memory_gib, GIB),
        memory_bandwidth_bytes_per_second=_scaled(row.memory_gb_per_second, GIGA),
        memory_bus_bits=row.memory_bus_bits,
        memory_bits_per_second_per_pin=_scaled(row.memory_gbit_per_pin, GIGA),
        l2_bytes=_whole(row.l2_mib, MIB),
        last_level_cache_bytes=_whole(row.last_level_cache_mib, MIB),
        matrix_flops_per_second={dtype: value * TERA for dtype, value in row.matrix_tflops.items()},
        vector_flops_per_second={dtype: value * TERA for dtype, value in row.vector_tflops.items()},
        board_power_watts=row.board_watts,
        board_power_range_watts=low_high,
        host_link=row.host_link,
        host_link_bytes_per_second=_scaled(row.host_gb_per_second, GIGA),
        peer_link=row.peer_link,
        peer_link_bytes_per_second=_scaled(row.peer_gb_per_second, GIGA),
        toolkit=row.toolkit,
        driver_names=row.driver_names,
        sources={group: str(sources[row.source[group]]) for group in FACT_GROUPS if group in row.source},
        halved_from_sparse=row.halved_from_sparse,
        note=row.note,
    )


def _scaled(value: float | None, unit: float) -> float | None:
    # Rounded to a millionth of the printed unit, so that 1.555 x 1e12 does not leave 1554999999999.9998.
    return None if value is None else round(value * unit, 0)


def _whole(value: float | None, unit: int) -> int | None:
    return None if value is None else round(value * unit)
