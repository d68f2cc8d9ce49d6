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

    Peaks are dense. ``matrix_flops_per_second`` holds the matrix units (tensor cores, matrix cores, XMX,
    AMX), ``vector_flops_per_second`` the ordinary ones; both by dtype name
    (``fp64 tf32 fp32 fp16 bf16 fp8 int8 fp4``).
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


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device present here, as one framework sees it."""

    framework: str
    id: str
    """What a script calls it: ``cuda:0``, ``xpu:1``, ``mps``, ``cpu``."""
    name: str
    driver: str | None = None
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None
    units: int | None = None
    """Multiprocessors or compute units, as the framework tells them."""
    uuid: str | None = None
    pci_address: str | None = None
    card: str | None = None
    """The name of its `Card`, where its facts are known."""
    part: str | None = None
    """What part of a card it is, if it is not whole: a MIG slice, a virtual GPU."""
    dtypes: dict[str, bool] = {}
    """Whether ``tf32``, ``bf16``, ``fp16``, ``fp8`` work at the speed of the hardware, not emulated."""
    energy_source: str | None = None
    energy_missing_because: str | None = None


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine of a run."""

    name: str
    system: str
    cpu: str
    cores: float
    """Cores that this process may use: affinity and container quota, not what is soldered."""
    matrix_extensions: tuple[str, ...] = ()
    """What speeds up matrix products in low precision: ``AMX-BF16``, ``AVX512-BF16`` …"""
    memory_bytes: int | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="run"):
    """One training, from spawn to end. See ``docs/records.md``."""

    version: int = 1
    outpace: str
    target: str
    script: str
    args: list[str]
    script_sha256: str | None = None
    state: str
    """``done``, ``failed``, ``interrupted`` or ``killed``."""
    error: str | None = None
    hint: str | None = None
    """What to do about the error."""
    exit_code: int = 0
    started_at: str
    """UTC, ISO 8601."""
    seconds: float
    """From spawn to the end of the script."""
    startup_seconds: float | None = None
    """From spawn to the start of the first training step: imports, data, compilation before it."""
    device: str | None = None
    device_name: str | None = None
    device_driver: str | None = None
    device_asked: str = "auto"
    seed: int | None = None
    host: Host
    versions: dict[str, str] = {}
    steps: int = 0
    samples: int | None = None
    """All samples trained on; ``None`` where they could not be counted."""
    epochs: int | None = None
    step_seconds: list[float] = []
    """Per step: from the end of the previous one (the first: from the start of training) to its end."""
    step_samples: list[tuple[int | None, int]] = []
    """Run lengths: (samples per step, how many such steps in a row)."""
    interrupted_steps: list[int] = []
    """Steps whose ``step_seconds`` hold something other than training too (evaluation between epochs)."""
    losses: list[float | None] = []
    """Per step; ``None``: not known or not finite."""
    nonfinite_losses: list[int] = []
    """Steps whose loss was NaN or infinite."""
    skipped_steps: int = 0
    """Optimizer steps that loss scaling skipped."""
    metrics: dict[str, float | None] = {}
    """The last value of each."""
    metric_history: list[tuple[int, str, float | None]] = []
    """(steps done, name, value), in order."""
    peak_bytes: int | None = None
    peak_bytes_source: str | None = None
    samples_per_second: float | None = None
    """In steady state: without warm-up, interrupted steps and partial batches."""
    steady_steps: int = 0
    """How many steps ``samples_per_second`` rests on."""
    notes: list[str] = []


Record = TypeVar("Record", bound=msgspec.Struct)


def to_json(record: msgspec.Struct) -> bytes:
    """The record as JSON: keys in the order of the fields, numbers as plain numbers, one line at the end."""
    return msgspec.json.encode(record) + b"\n"


def write_atomically(path: Path, content: bytes) -> None:
    """Write *content* so that *path* holds the old or the new content, never a part.

    What is no file (``/dev/stdout``, a pipe) is written to as it is; it must not be replaced by one.

    Raises:
        OutpaceError: the folder cannot be written, or the disk is full; nothing is left behind.
    """
    temporary: str | None = None
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
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
            f"could not write {path}: {error.strerror or error}", "choose another place, or free some space"
        ) from error


def check_writable(path: Path) -> None:
    """That *path* can be written later, without touching it.

    Raises:
        OutpaceError: its folder cannot be made or written, or it is a folder itself.
    """
    if path.is_dir():
        raise OutpaceError(f"could not write {path}: it is a folder", "name a file in it")
    if path.exists() and not path.is_file():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise OutpaceError(
            f"could not write {path}: {error.strerror or error}", "choose another place for the record"
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
            f"{path} is not a {kind.__name__.lower()} record: {error}",
            "is it complete, and written by outpace?",
        ) from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
