"""Stand-ins in the shape of the vendors' libraries and of the kernel's files, on a clock of their own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from outpace.meters import _counting

NOT_SUPPORTED = 3


class Time:
    """A clock that only a sleep moves, and what happens as it moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.passing: list[Callable[[float], None]] = []
        """Each is told how many seconds passed."""

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for happens in self.passing:
            happens(seconds)


def simulated(monkeypatch: pytest.MonkeyPatch) -> Time:
    """A clock by which the meters go, so that no test waits."""
    time = Time()
    monkeypatch.setattr(_counting, "clock", time.clock)
    monkeypatch.setattr(_counting, "sleep", time.sleep)
    return time


class Power:
    """A device that draws *watts*, and its true energy since the clock began."""

    def __init__(self, time: Time, watts: float = 300.0, joules: float = 5000.0) -> None:
        self.watts = watts
        self.joules = joules
        time.passing.append(self._pass)

    def _pass(self, seconds: float) -> None:
        self.joules += self.watts * seconds


class NVMLError(Exception):
    """As pynvml has it: a number, and words for it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return {1: "Uninitialized", 3: "Not Supported", 9: "Driver Not Loaded", 15: "GPU is lost"}[self.value]


@dataclass
class NvidiaCard:
    """A card as NVML shows it. What is ``None`` is not supported."""

    power: Power
    uuid: str = "GPU-d0f1-aa"
    bus: str = "00000000:07:00.0"
    name: str = "NVIDIA A100-SXM4-40GB"
    counter: Callable[[float], float] | None = lambda joules: joules * 1e3
    """Millijoules that the counter shows, from the true joules."""
    tells_power: bool = True
    module_watts: float | None = None
    slices: list[str] = field(default_factory=list)
    virtual: bool = False
    coupled: bool = False
    reasons: int = 0
    lost: bool = False
    hidden: bool = False
    """The container may not see it."""


def pynvml(cards: list[NvidiaCard], *, old: bool = False) -> Any:
    """The module ``pynvml``; *old*: of before field values and event reasons."""
    nvml: Any = ModuleType("pynvml")
    nvml.started = 0
    nvml.NVMLError = NVMLError

    def told(value: Any) -> Any:
        if nvml.started == 0:
            raise NVMLError(1)
        if value is None:
            raise NVMLError(NOT_SUPPORTED)
        return value

    def start(by: int) -> None:
        nvml.started += by

    def energy(card: NvidiaCard) -> int:
        if card.lost:
            raise NVMLError(15)
        return int(told(card.counter and card.counter(card.power.joules)))

    def field_values(card: NvidiaCard, asked: list[tuple[int, int]]) -> list[Any]:
        watts = card.module_watts if asked[0][1] == 1 else (card.power.watts if card.tells_power else None)
        value = SimpleNamespace(uiVal=int((watts or 0) * 1e3))
        return [SimpleNamespace(nvmlReturn=0 if watts is not None else NOT_SUPPORTED, value=value)]

    nvml.nvmlInit = lambda: start(1)
    nvml.nvmlShutdown = lambda: start(-1)
    nvml.nvmlDeviceGetCount = lambda: told(len(cards))
    nvml.nvmlDeviceGetHandleByIndex = lambda index: told(None if cards[index].hidden else cards[index])
    nvml.nvmlDeviceGetUUID = lambda handle: handle if isinstance(handle, str) else handle.uuid
    nvml.nvmlDeviceGetName = lambda card: card.name
    nvml.nvmlDeviceGetPciInfo = lambda card: SimpleNamespace(busId=card.bus)
    nvml.nvmlDeviceGetTotalEnergyConsumption = energy
    nvml.nvmlDeviceGetPowerUsage = lambda card: told(
        int(card.power.watts * 1e3) if card.tells_power else None
    )
    nvml.nvmlDeviceGetVirtualizationMode = lambda card: told(2 if card.virtual else 0)
    nvml.nvmlDeviceGetMigMode = lambda card: told([1, 1] if card.slices else None)
    nvml.nvmlDeviceGetMaxMigDeviceCount = lambda card: told(7 if card.slices else 0)
    nvml.nvmlDeviceGetMigDeviceHandleByIndex = lambda card, index: told(
        card.slices[index] if index < len(card.slices) else None
    )
    nvml.nvmlDeviceGetClockInfo = lambda _card, kind: told({1: 1095}.get(kind))
    nvml.nvmlDeviceGetMaxClockInfo = lambda _card, kind: told({1: 1410}.get(kind))
    nvml.nvmlDeviceGetTemperature = lambda _card, sensor: told({0: 61}.get(sensor))
    if old:
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda card: told(card.reasons)
    else:
        nvml.NVML_FI_DEV_POWER_INSTANT = 186
        nvml.nvmlDeviceGetFieldValues = field_values
        nvml.nvmlDeviceGetCurrentClocksEventReasons = lambda card: told(card.reasons)
        nvml.nvmlDeviceGetC2cModeInfoV = lambda card: SimpleNamespace(isC2cEnabled=told(card.coupled))
    return nvml


@dataclass
class AmdCard:
    """A card as amdsmi shows it."""

    power: Power
    bdf: str = "0000:c1:00.0"
    count: Callable[[float], dict[str, Any]] | None = lambda joules: {
        "energy_accumulator": int(joules * 1e6 / 15.3),
        "counter_resolution": 15.3,
        "timestamp": 1,
    }
    """The answer of the counter, from the true joules; ``None``: not supported."""
    power_info: Callable[[float], dict[str, Any]] = lambda watts: {
        "current_socket_power": watts,
        "average_socket_power": "N/A",
    }
    metrics: dict[str, Any] = field(default_factory=dict)
    partition: str = "SPX"


def amdsmi(cards: list[AmdCard]) -> Any:
    """The module ``amdsmi``, which does not count how often it was started."""
    module: Any = ModuleType("amdsmi")
    module.AmdSmiException = type("AmdSmiException", (Exception,), {})
    module.AmdSmiClkType = SimpleNamespace(GFX="gfx")
    module.started = False

    def start(on: bool) -> None:
        module.started = on

    def told(value: Any) -> Any:
        if not module.started:
            raise module.AmdSmiException("AMDSMI_STATUS_NOT_INIT")
        if value is None:
            raise module.AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")
        return value

    module.amdsmi_init = lambda: start(True)
    module.amdsmi_shut_down = lambda: start(False)
    module.amdsmi_get_processor_handles = lambda: told(cards)
    module.amdsmi_get_gpu_device_bdf = lambda card: told(card.bdf)
    module.amdsmi_get_energy_count = lambda card: told(card.count and card.count(card.power.joules))
    module.amdsmi_get_power_info = lambda card: told(card.power_info(card.power.watts))
    module.amdsmi_get_clock_info = lambda _card, _kind: told({"clk": 2000, "max_clk": 2100})
    module.amdsmi_get_gpu_metrics_info = lambda card: told(dict(card.metrics))
    module.amdsmi_get_gpu_compute_partition = lambda card: told(card.partition)
    return module


class Microjoules:
    """A counter in a file of the kernel: writes itself anew whenever time passes."""

    def __init__(self, time: Time, file: Path, shows: Callable[[float], float], power: Power) -> None:
        self.file, self.shows, self.power = file, shows, power
        self.write(0.0)
        time.passing.append(self.write)

    def write(self, _seconds: float) -> None:
        self.file.write_text(f"{int(self.shows(self.power.joules) * 1e6)}\n")


def hwmon(root: Path, *, name: str = "xe", address: str = "0000:29:00.0", number: int = 3) -> Path:
    """The folder of an Intel card below *root* as the kernel lays it out, still without counters."""
    folder = root / "devices" / address / "hwmon" / f"hwmon{number}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "device").symlink_to(root / "devices" / address)
    (root / folder.name).symlink_to(folder)
    return folder


class ZeLoader:
    """``libze_loader.so.1`` with cards by PCI bus, each with energy domains: (on a tile, microjoules)."""

    def __init__(
        self, cards: dict[int, list[tuple[bool, Callable[[], float]]]], *, whole: bool = True
    ) -> None:
        self.cards, self.whole = cards, whole
        self.init = 0

    def zesInit(self, _flags: Any) -> int:
        return self.init

    def zesDriverGet(self, count: Any, handles: Any) -> int:
        return _list([1], count, handles)

    def zesDeviceGet(self, _driver: Any, count: Any, handles: Any) -> int:
        return _list(list(self.cards), count, handles)

    def zesDevicePciGetProperties(self, card: Any, properties: Any) -> int:
        assert properties._obj.stype == 2
        properties._obj.bus = card.value
        return 0

    def zesDeviceGetCardPowerDomain(self, card: Any, handle: Any) -> int:
        if not self.whole or not self.cards[card.value]:
            return 0x78000003
        handle._obj.value = card.value * 100
        return 0

    def zesDeviceEnumPowerDomains(self, card: Any, count: Any, handles: Any) -> int:
        return _list([card.value * 100 + n for n in range(len(self.cards[card.value]))], count, handles)

    def zesPowerGetProperties(self, domain: Any, properties: Any) -> int:
        assert properties._obj.stype == 0xD
        properties._obj.on_subdevice = self.cards[domain.value // 100][domain.value % 100][0]
        return 0

    def zesPowerGetEnergyCounter(self, domain: Any, counter: Any) -> int:
        energy = self.cards[domain.value // 100][domain.value % 100][1]()
        if energy < 0:
            return 0x70010000
        counter._obj.energy = int(energy)
        return 0


def _list(values: list[int], count: Any, handles: Any) -> int:
    """As Level Zero lists: without room for handles it tells how many there are."""
    if handles is None:
        count._obj.value = len(values)
    else:
        assert isinstance(handles, ctypes.Array)
        for index, value in enumerate(values):
            handles[index] = value
    return 0
