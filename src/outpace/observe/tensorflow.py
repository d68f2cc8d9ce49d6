"""TensorFlow: its version and its devices. Training is seen where it goes through Keras' optimizers."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from outpace import host
from outpace.records import Device

if TYPE_CHECKING:
    from outpace.watcher import Watch

IMPORTS = ("tensorflow",)


def why_not() -> str | None:
    """Why TensorFlow cannot be used here."""
    if importlib.util.find_spec("tensorflow") is None:
        return 'TensorFlow is not installed: pip install "outpace[tensorflow]"'
    return None


def devices() -> list[Device]:
    """The devices that TensorFlow sees: accelerators, then the CPU."""
    import tensorflow

    found = []
    build = tensorflow.sysconfig.get_build_info()
    for device in tensorflow.config.list_physical_devices():
        if device.device_type == "CPU":
            continue
        details = tensorflow.config.experimental.get_device_details(device)
        kind, _, index = device.name.rpartition("device:")[2].lower().partition(":")
        version = build.get("cuda_version")
        found.append(
            Device(
                framework="tensorflow",
                id=f"{'cuda' if kind == 'gpu' else kind}:{index or 0}",
                name=str(details.get("device_name") or device.name),
                driver=f"CUDA {version}" if version and kind == "gpu" else None,
            )
        )
    found.append(
        Device(framework="tensorflow", id="cpu", name=host.cpu_name(), memory_total_bytes=host.memory_bytes())
    )
    return found


def attach(watch: Watch) -> None:
    """Note that TensorFlow is here. No device is asked of it: it may only feed data to another framework."""
    import tensorflow

    watch.framework("tensorflow", tensorflow.__version__)
