"""AMD cards by the package ``amdsmi``, which comes with ROCm."""

from __future__ import annotations

from outpace.records import Device
from outpace.visible import same_card

SOURCE = "amdsmi energy counter, whole card"


def covers(device: Device) -> bool:
    """ROCm devices, which PyTorch calls ``cuda``."""
    return device.id.startswith("cuda") and (device.driver or "").startswith("ROCm")


def why_not(device: Device) -> str | None:
    """Why amdsmi gives no energy for *device*."""
    try:
        import amdsmi  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except (ImportError, KeyError, OSError):  # without ROCm its own look-up of the library fails
        return "amdsmi is missing; it comes with ROCm: pip install /opt/rocm/share/amd_smi"
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        return f"amdsmi does not start: {error}"
    try:
        for handle in amdsmi.amdsmi_get_processor_handles():
            if same_card(amdsmi.amdsmi_get_gpu_device_bdf(handle), device.pci_address):
                count = amdsmi.amdsmi_get_energy_count(handle)
                counted = count.get("energy_accumulator", count.get("power", 0))
                return None if counted > 0 else "the energy counter of this card stands at zero"
    except amdsmi.AmdSmiException as error:
        return f"this card or driver has no energy counter ({error})"
    finally:
        amdsmi.amdsmi_shut_down()
    return "amdsmi lists no card with this PCI address"
