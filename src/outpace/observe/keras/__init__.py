"""Keras 3 (and ``tf.keras``) on TensorFlow, JAX and PyTorch: ``fit``, ``train_on_batch``, custom loops."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outpace.records import Device
    from outpace.watcher import Watch

IMPORTS = ("keras",)


def why_not() -> str | None:
    """Why Keras cannot be used here."""
    if importlib.util.find_spec("keras") is None:
        return 'Keras is not installed: pip install "outpace[tensorflow]"'
    if not any(importlib.util.find_spec(name) for name in ("tensorflow", "jax", "torch")):
        return 'Keras has no back-end here: pip install "outpace[tensorflow]"'
    return None


def devices() -> list[Device]:
    """The devices of the back-end that Keras would use."""
    from outpace.observe.keras.places import all_devices

    return all_devices()


def attach(watch: Watch) -> None:
    """Report training steps to *watch* from now on.

    Raises:
        OutpaceError: the device that the job asks for is not here.
    """
    import keras

    from outpace.observe.keras import places
    from outpace.observe.keras.fit import Fit
    from outpace.observe.keras.loops import Loops

    watch.framework(f"keras on {keras.backend.backend()}", keras.__version__)
    places.check_asked(watch.job.device)
    watch.peaks.append(places.peak)
    watch.synchronizers.append(places.synchronize)
    tracer = None
    if watch.job.plan is not None and watch.job.plan.trace:
        from outpace.observe.keras.tracing import Tracer

        tracer = Tracer(keras.backend.backend())
        tracer.install()
        watch.tracers.append(tracer)
    fit = Fit(watch, tracer)
    fit.install()
    Loops(watch, fit).install()
