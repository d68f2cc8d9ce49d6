"""What is there: cards, the devices that frameworks see, the machine."""

from __future__ import annotations

import msgspec


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
