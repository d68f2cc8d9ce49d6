"""The nouns as frozen values, with JSON in and out.

Every record that is saved carries ``record`` (its kind) and ``version`` (of its fields), is written
atomically, and is read back with a check of both. Field names carry units; see ``docs/records.md``.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

from outpace.errors import OutpaceError


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Datasheet facts of one accelerator card (or server CPU). What is not published is ``None`` or absent.

    Peaks are dense. ``matrix_flops_per_second`` holds the matrix units (tensor cores, matrix cores, XMX, AMX),
    ``vector_flops_per_second`` the ordinary ones; both by dtype name (``fp64 tf32 fp32 fp16 bf16 fp8 int8 fp4``).
    """

    name: str
    title: str
    vendor: str
    architecture: str
    year: int
    kind: str = "gpu"
    """``gpu``, ``accelerator`` (no graphics heritage: Gaudi), ``apu``, ``soc`` or ``cpu``."""
    process_nm: float | None = None
    units: int | None = None
    """Streaming multiprocessors, compute units, Xe cores, GPU cores, CPU cores."""
    vector_cores: int | None = None
    """FP32 lanes: CUDA cores, stream processors, XVE lanes."""
    clock_base_hertz: float | None = None
    clock_boost_hertz: float | None = None
    memory_kind: str | None = None
    memory_bytes: int | None = None
    memory_bandwidth_bytes_per_second: float | None = None
    memory_bus_bits: int | None = None
    memory_bits_per_second_per_pin: float | None = None
    l2_bytes: int | None = None
    last_level_cache_bytes: int | None = None
    """A cache larger than the L2, where there is one: Infinity Cache, Max series' Rambo cache, a CPU's L3."""
    matrix_flops_per_second: dict[str, float] = {}
    vector_flops_per_second: dict[str, float] = {}
    board_power_watts: float | None = None
    board_power_range_watts: tuple[float, float] | None = None
    host_link: str | None = None
    host_link_bytes_per_second: float | None = None
    """One direction."""
    peer_link: str | None = None
    peer_link_bytes_per_second: float | None = None
    """Both directions together and all links together, as vendors state it."""
    toolkit: str | None = None
    """The first toolkit release that supports it: ``CUDA 11.0``, ``ROCm 5.7``."""
    driver_names: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    """Fact group (``compute memory power links names``) to document title and date."""
    halved_from_sparse: tuple[str, ...] = ()
    """Dtypes whose dense peak is half of the only published (sparse) figure."""
    note: str | None = None


Record = TypeVar("Record", bound=msgspec.Struct)


def to_json(record: msgspec.Struct) -> bytes:
    """The record as JSON: keys in the order of the fields, numbers as plain numbers, one line at the end."""
    return msgspec.json.encode(record) + b"\n"


def write_atomically(path: Path, content: bytes) -> None:
    """Write *content* so that *path* holds the old or the new content, never a part.

    Raises:
        OutpaceError: the folder cannot be written, or the disk is full; nothing is left behind.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise OutpaceError(
            f"could not write {path}: {error.strerror or error}", "free some space or choose another place"
        ) from error


def read(path: Path, kind: type[Record]) -> Record:
    """Read a saved record of *kind*.

    Raises:
        OutpaceError: the file is missing, truncated, of another kind or of a newer version.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise OutpaceError(f"could not read {path}: {error.strerror or error}") from error
    except msgspec.MsgspecError as error:
        raise OutpaceError(
            f"{path} is not a {kind.__name__.lower()} record: {error}", "is it complete, and written by outpace?"
        ) from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
