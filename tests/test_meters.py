"""Energy meters against fakes in the shape of the vendors' libraries and of the kernel's files."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from outpace.meters import _counting, amd, cpu, intel, nvidia
from outpace.records import Device

A100 = Device(
    framework="torch",
    id="cuda:0",
    name="NVIDIA A100-SXM4-40GB",
    driver="CUDA 12.8",
    uuid="d0f1-aa",
    pci_address="00000000:07:00.0",
)


class NVMLError(Exception):
    """As pynvml has it."""


def fake_pynvml(uuids: list[Any], energy: Any, start: Exception | None = None) -> ModuleType:
    """pynvml with cards of *uuids*, whose counter reads *energy* and then more (an exception is raised)."""
    module: Any = ModuleType("pynvml")
    energy = list(energy)

    def counted(handle: int) -> Any:
        value = answer(energy[handle])
        energy[handle] += 1 if value else 0
        return value

    def answer(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    module.NVMLError = NVMLError
    module.nvmlInit = lambda: answer(start)
    module.nvmlShutdown = lambda: None
    module.nvmlDeviceGetCount = lambda: len(uuids)
    module.nvmlDeviceGetHandleByIndex = lambda index: index
    module.nvmlDeviceGetUUID = lambda handle: uuids[handle]
    module.nvmlDeviceGetName = lambda _handle: "NVIDIA A100-SXM4-40GB"
    module.nvmlDeviceGetPciInfo = lambda handle: type("Pci", (), {"busId": f"00000000:{handle:02X}:00.0"})
    module.nvmlDeviceGetTotalEnergyConsumption = counted
    return module  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("uuids", "energy", "said"),
    [
        (["GPU-xx", "GPU-d0f1-aa"], [NVMLError("wrong card asked"), 123456], None),
        ([b"GPU-xx", b"GPU-d0f1-aa"], [0, 5], None),
        (["GPU-d0f1-aa"], [NVMLError("Not Supported")], "no energy counter (Not Supported)"),
        (["GPU-d0f1-aa"], [0], "stands at zero"),
        (["GPU-xx"], [7], "lists no card with this UUID"),
        ([], [], "lists no card with this UUID"),
    ],
)
def test_nvidia(
    uuids: list[Any], energy: list[Any], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml(uuids, energy))
    reason = nvidia.why_not(A100)
    assert (reason is None) if said is None else said in str(reason)


def test_nvidia_lists_its_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml([b"GPU-aa", "GPU-bb"], [1, 1]))
    assert [(card.uuid, card.pci_address) for card in nvidia.cards()] == [
        ("GPU-aa", "00000000:00:00.0"),
        ("GPU-bb", "00000000:01:00.0"),
    ]
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml([], [], NVMLError("Driver Not Loaded")))
    assert nvidia.cards() == []
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvidia.cards() == []


def test_nvidia_without_driver_or_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_pynvml([], [], NVMLError("Driver Not Loaded")))
    assert "Driver Not Loaded" in str(nvidia.why_not(A100))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in str(nvidia.why_not(A100))


@pytest.mark.parametrize(
    ("count", "said"), [({"energy_accumulator": 9}, None), ({"power": 9}, None), ({"power": 0}, "at zero")]
)
def test_amd(count: dict[str, int], said: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("amdsmi")
    module.AmdSmiException = type("AmdSmiException", (Exception,), {})
    module.amdsmi_init = module.amdsmi_shut_down = lambda: None
    module.amdsmi_get_processor_handles = lambda: ["0000:01:00.0", "0000:C1:00.0"]
    module.amdsmi_get_gpu_device_bdf = lambda handle: handle
    counts = ({name: value and value + more for name, value in count.items()} for more in range(100))
    module.amdsmi_get_energy_count = lambda handle: next(counts) if "C1" in handle else {"power": 0}
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    device = Device(
        framework="torch",
        id="cuda:0",
        name="AMD Instinct MI300X",
        driver="ROCm 6.4",
        pci_address="00000000:c1:00.0",
    )
    reason = amd.why_not(device)
    assert (reason is None) if said is None else said in str(reason)
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert "comes with ROCm" in str(amd.why_not(device))


def count_on(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """While outpace watches the counter in *file*, it counts."""
    monkeypatch.setattr(_counting, "sleep", lambda _: file.write_text(f"{int(file.read_text()) + 1000}\n"))


def test_intel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(framework="torch", id="xpu:0", name="Intel", pci_address="00000000:29:00.0")
    assert "no hwmon" in str(intel.why_not(device, tmp_path))
    card = tmp_path / "devices" / "0000:29:00.0"
    card.mkdir(parents=True)
    folder = tmp_path / "hwmon3"
    folder.mkdir()
    (folder / "name").write_text("xe\n")
    (folder / "device").symlink_to(card)
    (folder / "energy1_input").write_text("0\n")
    assert "stands at zero" in str(intel.why_not(device, tmp_path))
    (folder / "energy1_input").write_text("123456\n")
    count_on(monkeypatch, folder / "energy1_input")
    assert intel.why_not(device, tmp_path) is None
    elsewhere = Device(framework="torch", id="xpu:1", name="Intel", pci_address="00000000:3a:00.0")
    assert "PCI address" in str(intel.why_not(elsewhere, tmp_path))


def test_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(framework="torch", id="cpu", name="a CPU")
    assert "virtual machines" in str(cpu.why_not(device, tmp_path))
    package = tmp_path / "intel-rapl:0"
    package.mkdir()
    assert "cannot be read" in str(cpu.why_not(device, tmp_path))
    (package / "energy_uj").write_text("987654\n")
    count_on(monkeypatch, package / "energy_uj")
    assert cpu.why_not(device, tmp_path) is None

    def refused(_path: Path, *_args: Any, **_kwargs: Any) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refused)
    assert "chmod" in str(cpu.why_not(device, tmp_path))
