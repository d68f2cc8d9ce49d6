"""The limits of a device that computes by a clock of ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import cards, ceilings
from outpace.records import Ceilings, to_json
from outpace.units import GIB, KIB, MIB
from tests.measurements import CEILINGS

LAUNCH = 4e-6


class Bench:
    """A device whose work is over after as long as it should be; the host only gives it work."""

    name = "torch 2.9"

    def __init__(
        self, *, dtypes: tuple[str, ...] = ("fp32", "bf16"), memory_bytes: int | None = 80 * GIB
    ) -> None:
        self.dtypes = dtypes
        self.memory_bytes = memory_bytes
        self.clock = 0.0
        self.free_at = 0.0
        self.peaks = {"fp32": 20e12, "bf16": 200e12}
        self.sizes: list[int] = []
        self.waits = 0

    def now(self) -> float:
        return self.clock

    def _give(self, seconds: float) -> None:
        self.clock += LAUNCH
        self.free_at = max(self.free_at, self.clock) + seconds

    def product(self, dtype: str, size: int) -> Callable[[], object]:
        if dtype not in self.peaks:
            raise RuntimeError("not implemented")
        return lambda: self._give(2 * size**3 / self.peaks[dtype] / min(1.0, size / 4096))

    def copy(self, size_bytes: int) -> Callable[[], object]:
        self.sizes.append(size_bytes)
        rate = 8e12 if size_bytes <= 32 * MIB else 2e12
        return lambda: self._give(size_bytes / rate)

    def tiny(self) -> Callable[[], object]:
        return lambda: self._give(0.0)

    def wait(self) -> None:
        self.waits += 1
        self.clock = max(self.clock, self.free_at)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    found = Bench()
    monkeypatch.setattr(time, "perf_counter", found.now)
    return found


def test_the_best_of_several_products_and_copies(bench: Bench) -> None:
    found = ceilings.measure(bench, device="cuda:0", cores=8)
    assert found.matrix_flops_per_second["fp32"] == pytest.approx(20e12, rel=0.05)
    assert found.matrix_flops_per_second["bf16"] == pytest.approx(200e12, rel=0.05)
    assert found.launch_seconds == pytest.approx(LAUNCH)
    rates = dict(found.bandwidths)
    assert rates[256 * MIB] == pytest.approx(2e12, rel=0.05)
    assert rates[32 * MIB] == pytest.approx(8e12, rel=0.05)
    assert [size for size, _ in found.bandwidths] == sorted(rates)
    assert (found.measured, found.source) == (True, "measured here with torch 2.9")
    assert bench.waits > 10


def test_the_source_of_a_cpu_says_its_cores(bench: Bench) -> None:
    assert (
        ceilings.measure(bench, device="cpu", cores=1.5).source == "measured here with torch 2.9 on 1.5 cores"
    )


def test_what_a_device_cannot_is_absent_not_zero(bench: Bench) -> None:
    bench.dtypes = ("bf16", "fp64")
    found = ceilings.measure(bench, device="cuda:0", cores=8)
    assert set(found.matrix_flops_per_second) == {"bf16"}
    assert found.vector_flops_per_second == {}


def test_copies_leave_room_on_a_small_device(bench: Bench) -> None:
    bench.memory_bytes = 64 * MIB
    found = ceilings.measure(bench, device="cuda:0", cores=8)
    assert max(bench.sizes) <= 8 * MIB
    assert found.bandwidths


@given(st.lists(st.floats(1, 1e13), min_size=1, max_size=6))
def test_nothing_large_is_faster_than_something_small(rates: list[float]) -> None:
    given_ = list(enumerate(rates))
    found = ceilings._falling(given_)
    assert [size for size, _ in found] == [size for size, _ in given_]
    seen = [rate for _, rate in found]
    assert seen == sorted(seen, reverse=True)
    assert all(rate >= before for rate, before in zip(seen, rates, strict=True))
    assert seen[0] == max(rates)


def test_the_datasheet_of_every_card() -> None:
    for card in cards.load().values():
        found = ceilings.of_card(card)
        assert not found.measured
        assert found.source == f"datasheet of {card.title}, dense peaks"
        assert found.matrix_flops_per_second == card.matrix_flops_per_second
        assert [rate for _, rate in found.bandwidths] == [
            rate for rate in [card.memory_bandwidth_bytes_per_second] if rate
        ]
        assert found.cache_bytes is None or found.cache_bytes > 0
        assert found.launch_seconds is None


def test_ceilings_are_kept_by_all_that_they_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTPACE_DATA_DIR", str(tmp_path))
    one = ceilings.cache_path({"cores": "2", "framework": "torch 2.9"})
    assert one == ceilings.cache_path({"framework": "torch 2.9", "cores": "2"})
    assert one != ceilings.cache_path({"cores": "2", "framework": "torch 2.10"})
    assert ceilings.cached(one) is None
    ceilings.keep(one, CEILINGS)
    assert ceilings.cached(one) == CEILINGS
    one.write_bytes(to_json(CEILINGS)[:-20])
    assert ceilings.cached(one) is None, "a damaged file is measured anew"


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ceilings.keep(tmp_path / "file" / "x.json", CEILINGS)
    assert (tmp_path / "file").read_text() == ""


def test_the_better_of_two_measurements() -> None:
    other = Ceilings(
        device="cuda:0",
        source="s",
        measured=True,
        matrix_flops_per_second={"fp32": 12e12, "fp64": 1e12},
        bandwidths=[(4 * KIB, 9e12), (65536, 3e12), (2**22, 3e12)],
        launch_seconds=7e-6,
    )
    found = ceilings.better(CEILINGS, other)
    assert found.matrix_flops_per_second["fp32"] == 12e12
    assert found.matrix_flops_per_second["bf16"] == 160e12
    assert found.matrix_flops_per_second["fp64"] == 1e12
    assert found.bandwidths == [(65536, 4e12), (2**22, 3e12), (2**28, 1e12)]
    assert found.launch_seconds == 5e-6
