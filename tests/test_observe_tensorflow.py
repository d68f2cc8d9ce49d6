"""TensorFlow's devices, as fakes shaped like its own."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from outpace.observe import tensorflow as observer


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimpleNamespace(name="/physical_device:GPU:0", device_type="GPU")
    cpu = SimpleNamespace(name="/physical_device:CPU:0", device_type="CPU")
    experimental = SimpleNamespace(get_device_details=lambda _device: {"device_name": "Tesla T4"})
    fake = SimpleNamespace(
        sysconfig=SimpleNamespace(get_build_info=lambda: {"cuda_version": "12.5"}),
        config=SimpleNamespace(list_physical_devices=lambda: [cpu, gpu], experimental=experimental),
    )
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    first, second = observer.devices()
    assert (first.id, first.name, first.driver) == ("cuda:0", "Tesla T4", "CUDA 12.5")
    assert second.id == "cpu"
