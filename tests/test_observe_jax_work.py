"""Small pieces of work for JAX on the CPU."""

from __future__ import annotations

from typing import Any

import jax
import pytest

from outpace.observe import jax as observer
from outpace.observe.jax.work import DTYPES, Work


@pytest.fixture
def work() -> Work:
    found = observer.bench("cpu")
    assert isinstance(found, Work)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_of_their_dtype_and_size(dtype: str, work: Work) -> None:
    work.product(dtype, 8)()
    work.wait()
    found: Any = work._latest
    assert (found.shape, found.dtype) == ((8, 8), DTYPES[dtype])
    assert float(found[0, 0]) == 8


def test_only_tf32_may_be_less_precise(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    real = jax.lax.dot

    def dot(a: Any, b: Any, *, precision: Any) -> Any:
        asked.append(precision)
        return real(a, b, precision=precision)

    monkeypatch.setattr(jax.lax, "dot", dot)
    for dtype in ("tf32", "fp32"):
        work.product(dtype, 4)()
    assert asked == [jax.lax.Precision.DEFAULT, jax.lax.Precision.HIGHEST]


def test_a_copy_touches_so_many_bytes(work: Work) -> None:
    work.copy(4096)()
    assert 2 * work._latest.nbytes == 4096
    work.tiny()()
    assert work._latest.size == 1


def test_what_it_says_of_itself(work: Work) -> None:
    assert work.name == f"jax {jax.__version__}"
    assert work.dtypes == ("fp32", "bf16", "fp16")
    assert work.memory_bytes is None or work.memory_bytes > 2**28
