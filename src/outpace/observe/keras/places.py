"""The devices that Keras' back-end sees, and which of them a training runs on."""

from __future__ import annotations

import os
from typing import Any

from outpace import host
from outpace.errors import OutpaceError
from outpace.records import Device
from outpace.watcher import Watch

BACKENDS = ("tensorflow", "jax", "torch")


def all_devices() -> list[Device]:
    """The accelerators, then the CPU."""
    import importlib.util

    first = next(name for name in BACKENDS if importlib.util.find_spec(name))
    os.environ.setdefault("KERAS_BACKEND", first)
    import keras

    framework = f"keras on {keras.backend.backend()}"
    found = [Device(framework=framework, id=id_, name=name) for id_, name in accelerators().items()]
    found.append(
        Device(framework=framework, id="cpu", name=host.cpu_name(), memory_total_bytes=host.memory_bytes())
    )
    return found


def accelerators() -> dict[str, str]:
    """The back-end's accelerators: id (``cuda:0``) to name. With TensorFlow nothing is started by asking."""
    import keras

    backend = keras.backend.backend()
    if backend == "tensorflow":
        return _of_tensorflow()
    if backend == "jax":
        import jax

        return {
            jax_id(device): str(device.device_kind)
            for device in jax.local_devices()
            if device.platform != "cpu"
        }
    return _of_torch() if backend == "torch" else {}


def _of_tensorflow() -> dict[str, str]:
    import tensorflow

    found = {}
    for device in tensorflow.config.list_physical_devices():
        if device.device_type != "CPU":
            details = tensorflow.config.experimental.get_device_details(device)
            found[common_id(device.name)] = str(details.get("device_name") or device.name)
    return found


def _of_torch() -> dict[str, str]:
    import torch

    found = {
        f"{kind}:{index}": str(backend.get_device_name(index))
        for kind, backend in (("cuda", torch.cuda), ("xpu", torch.xpu))
        if backend.is_available()
        for index in range(backend.device_count())
    }
    return found | ({"mps": host.cpu_name()} if torch.backends.mps.is_available() else {})


def jax_id(device: Any) -> str:
    """A JAX device as scripts of other frameworks say it: ``cuda:0``."""
    kind = {"gpu": "cuda", "rocm": "cuda", "metal": "mps"}.get(
        device.platform.lower(), device.platform.lower()
    )
    return kind if kind in ("cpu", "mps") else f"{kind}:{getattr(device, 'local_hardware_id', None) or 0}"


def common_id(name: str) -> str:
    """TensorFlow's and PyTorch's names (``/physical_device:GPU:0``, ``cuda:0``) as ``cuda:0``."""
    kind, _, index = name.rpartition("device:")[2].lower().partition(":")
    kind = {"gpu": "cuda"}.get(kind, kind)
    return kind if kind in ("cpu", "mps") else f"{kind}:{index or 0}"


def check_asked(asked: str) -> None:
    """That the back-end has the kind of device that was asked for.

    Raises:
        OutpaceError: it has not.
    """
    kind = asked.partition(":")[0]
    if kind in ("auto", "cpu"):
        return
    import keras

    backend = keras.backend.backend()
    try:
        found = accelerators()
    except RuntimeError as error:  # JAX has a plug-in for the card, and the driver fails
        raise OutpaceError(
            f"no {asked} device: {error}".splitlines()[0], "is the driver installed?"
        ) from error
    if not any(id_.partition(":")[0] == kind for id_ in found):
        raise OutpaceError(
            f"Keras on {backend} sees no {asked} device",
            f"install {backend} for this card, set another KERAS_BACKEND, or use --device auto",
        )


def tell_place(watch: Watch, variable: Any) -> None:
    """Tell *watch* where *variable* of the model lives, and warn when an accelerator stands idle."""
    value = getattr(variable, "value", variable)
    value = value() if callable(value) else value
    device = value.device
    here = jax_id(device) if hasattr(device, "platform") else common_id(str(device))
    found = accelerators()
    on_torch = hasattr(value, "detach")
    watch.place(
        here, host.cpu_name() if here == "cpu" else found.get(here), synchronous=on_torch and here == "cpu"
    )
    if here == "cpu" and found and watch.job.device == "auto":
        watch.note(f"this script trains on the CPU although {next(iter(found))} is here")


def synchronize(_loss: object = None) -> None:
    """Wait until TensorFlow's devices are through. JAX and PyTorch are waited for by their own observers."""
    import keras

    if keras.backend.backend() == "tensorflow":
        import tensorflow

        if tensorflow.executing_eagerly():
            tensorflow.test.experimental.sync_devices()


def peak() -> tuple[int, str] | None:
    """The peak of the back-end's allocator over its accelerators: (bytes, source). JAX and PyTorch are asked
    by their own observers."""
    import keras

    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow

    used = 0
    for device in tensorflow.config.list_logical_devices():
        if device.device_type != "CPU":
            name = device.name.rpartition("device:")[2]
            used += int(tensorflow.config.experimental.get_memory_info(name)["peak"])
    return (used, "tensorflow") if used else None
