"""Small pieces of work for PyTorch on the CPU."""

from __future__ import annotations

import pytest
import torch

from outpace import ceilings
from outpace.observe import torch as observer
from outpace.observe.torch import work as module
from outpace.observe.torch.work import Work


@pytest.fixture
def work() -> Work:
    found = observer.bench("cpu")
    assert isinstance(found, Work)
    return found


@pytest.mark.parametrize(("dtype", "kind"), module.DTYPES.items())
def test_products_are_of_their_dtype_and_size(dtype: str, kind: torch.dtype, work: Work) -> None:
    found = work.product(dtype, 16)()
    assert isinstance(found, torch.Tensor)
    assert (found.dtype, found.shape) == (kind, (16, 16))


def test_a_copy_touches_so_many_bytes(work: Work) -> None:
    found = work.copy(4096)()
    assert isinstance(found, torch.Tensor)
    assert 2 * found.element_size() * found.nelement() == 4096


def test_the_smallest_operator_and_waiting(work: Work) -> None:
    found = work.tiny()()
    assert isinstance(found, torch.Tensor)
    assert found.nelement() == 1
    work.wait()


def test_a_cpu_has_no_tf32(work: Work) -> None:
    assert "tf32" not in work.dtypes
    assert work.name == f"torch {torch.__version__}"
    assert work.memory_bytes is None or work.memory_bytes > 2**28


def test_tf32_is_asked_for_on_cuda_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _index: (7, 9))
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    work = Work("cuda:0")
    assert work.memory_bytes == 7, "what is free"
    assert "tf32" in work.dtypes
    seen: list[bool] = []

    def rand(*_size: int, **_how: object) -> torch.Tensor:
        seen.append(matmul.allow_tf32)
        return torch.zeros(2, 2)

    monkeypatch.setattr(torch, "rand", rand)
    try:
        for dtype in ("tf32", "fp32", "bf16"):
            work.product(dtype, 2)
    finally:
        matmul.allow_tf32 = before
    assert seen == [True, True, False, False, False, False]


def test_what_is_measured_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "LARGEST_PRODUCT", 256)
    monkeypatch.setattr(ceilings, "COPY_BYTES", (2**16, 2**18))
    monkeypatch.setattr(ceilings, "REPEATS", 2)
    work = observer.bench("cpu")
    work.dtypes = ("fp32",)
    found = ceilings.measure(work, device="cpu", cores=1)
    assert found.matrix_flops_per_second["fp32"] > 1e6
    assert [size for size, _ in found.bandwidths] == [2**16, 2**18]
    assert (found.launch_seconds or 0) > 0
