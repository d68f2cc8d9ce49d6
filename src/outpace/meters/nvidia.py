"""NVIDIA cards by NVML (the package ``nvidia-ml-py``)."""

from __future__ import annotations

from typing import Any

from outpace.records import Device
from outpace.visible import Physical, same_card

SOURCE = "NVML energy counter, whole card"


def covers(device: Device) -> bool:
    """CUDA devices, but not AMD's, which PyTorch calls ``cuda`` too."""
    return device.id.startswith("cuda") and not (device.driver or "").startswith("ROCm")


def why_not(device: Device) -> str | None:
    """Why NVML gives no energy for *device*."""
    try:
        import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return "NVML is read through the package nvidia-ml-py: pip install nvidia-ml-py"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"NVML does not start: {error}"
    try:
        handle = _handle(pynvml, device)
        if handle is None:
            return "NVML lists no card with this UUID or PCI address"
        before = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError as error:
        return f"this card or driver has no energy counter ({error}); cards before Volta have none"
    finally:
        pynvml.nvmlShutdown()
    return None if before > 0 else "the energy counter of this card stands at zero"


def cards() -> list[Physical]:
    """The cards as NVML lists them, by PCI address; empty where NVML cannot be asked."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [
            Physical(
                uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                pci_address=_text(pynvml.nvmlDeviceGetPciInfo(handle).busId),
                name=_text(pynvml.nvmlDeviceGetName(handle)),
            )
            for handle in handles
        ]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _text(value: Any) -> str:
    """Older releases of the library answer in bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _handle(pynvml: Any, device: Device) -> Any:
    """The card by UUID or PCI address: its index differs between CUDA and NVML."""
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
        address = _text(pynvml.nvmlDeviceGetPciInfo(handle).busId)
        if same_card(uuid, device.uuid) or same_card(address, device.pci_address):
            return handle
    return None
