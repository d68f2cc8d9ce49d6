"""The devices that Keras' back-end sees, and which of them a training runs on."""

from __future__ import annotations

import os
from typing import Any

from outpace import host
from outpace.errors import OutpaceError
from outpace.records import Device
from outpace.watch import Watch

#: What the back-ends call an accelerator, by what scripts ask for.
KINDS = {"cuda": ("gpu", "cuda", "rocm"), "xpu": ("xpu",), "mps": ("mps", "metal")}


def all_devices() -> list[Device]:
    """The accelerators, then the CPU."""
    os.environ.setdefault("KERAS_BACKEND", _installed_backend())
    import keras

    framework = f"keras on {keras.backend.backend()}"
    found = [
        Device(framework=framework, id=name, name=described(name))
        for name in _names()
        if not name.startswith("cpu")
    ]
    found.append(
        Device(framework=framework, id="cpu", name=host.cpu_name(), memory_total_bytes=host.memory_bytes())
    )
    return found


def _installed_backend() -> str:
    import importlib.util

    return next(name for name in ("tensorflow", "jax", "torch") if importlib.util.find_spec(name))


def _names() -> list[str]:
    """Device names in the form ``cuda:0``, ``xpu:1``, ``cpu:0``."""
    import keras

    backend = keras.backend.backend()
    if backend == "torch":
        import torch

        return [f"cuda:{index}" for index in range(torch.cuda.device_count())] + ["cpu:0"]
    return [common_name(str(name)) for name in keras.distribution.list_devices()]


def common_name(name: str) -> str:
    """``gpu:0`` as scripts of other frameworks say it: ``cuda:0``. TensorFlow's long form is taken too."""
    short = name.rpartition("/")[2].removeprefix("device:").lower()
    return f"cuda{short.removeprefix('gpu')}" if short.startswith("gpu") else short


def described(name: str) -> str:
    """The model name of the device *name*, as the back-end tells it."""
    import keras

    kind, _, index = name.partition(":")
    if kind == "cpu":
        return host.cpu_name()
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow

        cards = tensorflow.config.list_physical_devices(kind.upper().replace("CUDA", "GPU"))
        details = tensorflow.config.experimental.get_device_details(cards[int(index)])
        return str(details.get("device_name", name))
    if backend == "jax":
        import jax

        return str(jax.devices()[int(index)].device_kind)
    import torch

    return str(torch.cuda.get_device_name(int(index)))


def check_asked(asked: str) -> None:
    """That the back-end has the kind of device that was asked for.

    Raises:
        OutpaceError: it has not.
    """
    kind = asked.partition(":")[0]
    if kind in ("auto", "cpu") or any(name.partition(":")[0] in KINDS[kind] for name in _names()):
        return
    import keras

    raise OutpaceError(
        f"Keras on {keras.backend.backend()} sees no {asked} device",
        "install the back-end's build for this card, choose another with KERAS_BACKEND, or use --device auto",
    )


def tell_place(watch: Watch, variable: Any) -> None:
    """Tell *watch* where *variable* of the model lives, and warn when an accelerator stands idle beside it."""
    device = getattr(variable.value, "device", None)
    name = common_name(str(device() if callable(device) else device))
    kind = name.partition(":")[0]
    watch.place("cpu" if kind == "cpu" else name, described(name))
    better = next((other for other in _names() if not other.startswith("cpu")), None)
    if kind == "cpu" and better and watch.job.device == "auto":
        watch.note(f"this script trains on the CPU although {better} is here")


def peak() -> tuple[int, str] | None:
    """The peak of the back-end's allocator over its accelerators: (bytes, source)."""
    import keras

    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow

        cards = [name for name in _names() if not name.startswith("cpu")]
        used = sum(
            tensorflow.config.experimental.get_memory_info(name.replace("cuda", "GPU"))["peak"]
            for name in cards
        )
        return (used, "tensorflow") if used else None
    if backend == "jax":
        import jax

        stats = [device.memory_stats() or {} for device in jax.local_devices()]
        used = sum(int(one.get("peak_bytes_in_use", 0)) for one in stats)
        return (used, "jax") if used else None
    return None
