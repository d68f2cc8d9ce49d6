"""TensorFlow's devices, as fakes shaped like its own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

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


class Tensors:
    """TensorFlow as far as work needs it; tensors are (size, dtype, device)."""

    __version__ = "2.20"
    bfloat16, float16, float32 = "bfloat16", "float16", "float32"

    def __init__(self) -> None:
        self.where: list[str] = []
        self.tf32: list[bool] = []
        self.waits = 0
        self.config = SimpleNamespace(
            experimental=SimpleNamespace(enable_tensor_float_32_execution=self.tf32.append)
        )
        self.random = SimpleNamespace(uniform=lambda shape: (shape, "float32", self.where[-1]))
        self.test = SimpleNamespace(experimental=SimpleNamespace(sync_devices=self._wait))

    def _wait(self) -> None:
        self.waits += 1

    @contextlib.contextmanager
    def device(self, name: str) -> Iterator[None]:
        self.where.append(name)
        yield

    def cast(self, tensor: Any, kind: str) -> Any:
        return (tensor[0], kind, tensor[2])

    def matmul(self, a: Any, b: Any) -> Any:
        assert a == b
        return a

    def zeros(self, size: int) -> Any:
        return size


def work_on(device: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Tensors]:
    fake = Tensors()
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    return observer.bench(device), fake


@pytest.mark.parametrize(
    ("device", "where", "dtypes"),
    [
        ("cpu", "/CPU:0", ("fp32", "bf16")),
        ("cuda:1", "/GPU:1", ("fp32", "tf32", "bf16", "fp16")),
        ("cuda", "/GPU:0", ("fp32", "tf32", "bf16", "fp16")),
    ],
)
def test_work_is_done_where_it_should_be(
    device: str, where: str, dtypes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, fake = work_on(device, monkeypatch)
    assert (work.name, work.dtypes) == ("tensorflow 2.20", dtypes)
    kinds = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    for dtype in dtypes:
        assert work.product(dtype, 32)() == ((32, 32), kinds[dtype], where)
    assert fake.tf32 == [dtype == "tf32" for dtype in dtypes]
    assert work.copy(4096)() == 4096 / 2 / 4 + 1.0
    assert work.tiny()() == 2.0
    assert set(fake.where) == {where}
    work.wait()
    assert fake.waits == 1
