"""TensorFlow: its version and its devices. Training is seen where it goes through Keras' optimizers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from outpace import host
from outpace.records import Device

if TYPE_CHECKING:
    from outpace.ceilings import Bench
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


def bench(device: str) -> Bench:
    """Work for *device*, to measure its limits."""
    return Work(device)


class Work:
    """See `outpace.ceilings.Bench`."""

    def __init__(self, device: str) -> None:
        import tensorflow

        self._tensorflow: Any = tensorflow
        self.name = f"tensorflow {tensorflow.__version__}"
        kind, _, index = device.partition(":")
        self._where = "/CPU:0" if kind == "cpu" else f"/GPU:{index or 0}"
        self.dtypes: tuple[str, ...] = (
            ("fp32", "tf32", "bf16", "fp16") if kind == "cuda" else ("fp32", "bf16")
        )
        self.memory_bytes = host.memory_bytes()

    def product(self, dtype: str, size: int) -> Callable[[], object]:
        """A product of two square matrices."""
        tensorflow = self._tensorflow
        tensorflow.config.experimental.enable_tensor_float_32_execution(dtype == "tf32")
        kind = {"bf16": tensorflow.bfloat16, "fp16": tensorflow.float16}.get(dtype, tensorflow.float32)
        with tensorflow.device(self._where):
            a = tensorflow.cast(tensorflow.random.uniform((size, size)), kind)
        return lambda: tensorflow.matmul(a, a)

    def copy(self, size_bytes: int) -> Callable[[], object]:
        """Reads half of *size_bytes* and writes the other half."""
        with self._tensorflow.device(self._where):
            a = self._tensorflow.zeros(size_bytes // 8)
        return lambda: a + 1.0

    def tiny(self) -> Callable[[], object]:
        """The smallest operator."""
        return self.copy(8)

    def wait(self) -> None:
        """Until the device is through."""
        self._tensorflow.test.experimental.sync_devices()


def attach(watch: Watch) -> None:
    """Note that TensorFlow is here. No device is asked of it: it may only feed data to another framework."""
    import tensorflow

    watch.framework("tensorflow", tensorflow.__version__)
