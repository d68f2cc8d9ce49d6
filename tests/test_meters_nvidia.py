"""NVIDIA: cards without a counter, with a lying one, in slices, in modules, virtual, numbered otherwise."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from outpace.errors import OutpaceError
from outpace.meters import Gauge, nvidia
from outpace.records import Device
from tests.fakes import NvidiaCard, Power, Time, pynvml, simulated

A100 = Device(
    framework="torch", id="cuda:0", name="NVIDIA A100-SXM4-40GB", driver="CUDA 12.8", uuid="d0f1-aa"
)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return simulated(monkeypatch)


def opened(monkeypatch: pytest.MonkeyPatch, *cards: NvidiaCard, device: Device = A100, **how: bool) -> Gauge:
    nvml = pynvml(list(cards), **how)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert nvidia.why_not(device) is None
    assert nvml.started == 0
    return nvidia.open(device)


def refused(monkeypatch: pytest.MonkeyPatch, *cards: NvidiaCard, device: Device = A100) -> str:
    nvml = pynvml(list(cards))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    reason = nvidia.why_not(device)
    assert reason is not None
    with pytest.raises(OutpaceError) as error:
        nvidia.open(device)
    assert reason in error.value.what
    assert error.value.hint
    assert nvml.started == 0, "NVML is let go of"
    return reason


def test_a_sound_counter_is_read(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    gauge = opened(monkeypatch, NvidiaCard(Power(time), reasons=0x4 | 0x1))
    assert (gauge.source, gauge.scope) == ("NVML energy counter", "card")
    assert "2312.02741" in str(gauge.caveat)
    time.sleep(10)
    reading = gauge.read()
    assert reading.joules == pytest.approx(3000, rel=1e-3)
    assert reading[1:] == (300.0, 1095e6, 1410e6, ("power limit",), 61)
    gauge.close()
    gauge.close()
    assert sys.modules["pynvml"].started == 0


@pytest.mark.parametrize("old", [False, True], ids=["new library", "old library"])
@pytest.mark.parametrize(
    ("counter", "said"),
    [
        (None, "no energy counter (Not Supported); cards before Volta have none"),
        (lambda _joules: 0, "stands at zero"),
        (lambda _joules: 123456, "stands still"),
        (lambda joules: joules * 1e6, "absurd"),
    ],
    ids=["missing", "zero", "frozen", "absurd"],
)
def test_a_missing_zero_or_frozen_counter_falls_back_to_power_never_to_zero(
    counter: Any, said: str, old: bool, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauge = opened(monkeypatch, NvidiaCard(Power(time), counter=counter), old=old)
    assert gauge.source == "NVML power, integrated"
    assert said in str(gauge.caveat)
    assert "25 %" in str(gauge.caveat), "power has its own known error"
    for _ in range(10):
        time.sleep(1)
        reading = gauge.read()
    assert reading.joules == pytest.approx(3000)
    assert reading.watts == 300


@pytest.mark.parametrize(
    ("counter", "said"),
    [(None, "Not Supported"), (lambda _: 0, "stands at zero"), (lambda _: 123456, "stands still")],
)
def test_without_counter_and_power_energy_is_not_measured(
    counter: Any, said: str, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = refused(monkeypatch, NvidiaCard(Power(time), counter=counter, tells_power=False))
    assert said in reason
    assert "tells no power" in reason


@pytest.mark.parametrize("counter", [NvidiaCard.counter, None], ids=["counter", "power"])
def test_that_nvml_sees_a_quarter_of_the_time_of_an_a100_is_said(
    counter: Any, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = str(opened(monkeypatch, NvidiaCard(Power(time), counter=counter)).caveat)
    assert "only 25 % of the time" in said
    assert "windows of many seconds" in said


def test_a_counter_without_power_beside_it_is_read(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    gauge = opened(monkeypatch, NvidiaCard(Power(time), tells_power=False))
    time.sleep(1)
    reading = gauge.read()
    assert reading.joules == pytest.approx(300, rel=0.01)
    assert reading.watts is None


def test_power_in_short_readings_follows_its_changes(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    power = Power(time, watts=100)
    gauge = opened(monkeypatch, NvidiaCard(power, counter=None))
    time.sleep(1)
    power.watts = 500
    gauge.read()
    time.sleep(1)
    assert gauge.read().joules == pytest.approx((100 + 500) / 2 + 500)


@pytest.mark.parametrize(
    "device",
    [
        {"uuid": "MIG-77", "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb"},
        {"uuid": "77", "name": "NVIDIA A100-SXM4-40GB"},
        {"uuid": "MIG-GPU-d0f1-aa/1/0", "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb"},
        {"uuid": None, "pci_address": "0000:07:00.0", "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb"},
    ],
    ids=["UUID", "UUID without MIG", "UUID of old drivers", "PCI address"],
)
def test_a_mig_slice_has_the_power_of_its_whole_card_and_says_so(
    device: dict[str, Any], time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = NvidiaCard(Power(time, watts=50), uuid="GPU-xx", bus="00000000:06:00.0", slices=["MIG-66"])
    whole = NvidiaCard(Power(time), slices=["MIG-76", "MIG-77"])
    made = Device(framework="torch", id="cuda:0", driver="CUDA 12.8", **device)
    gauge = opened(monkeypatch, other, whole, device=made)
    assert gauge.scope == "card (of which this is a part)"
    assert gauge.read().watts == 300


def test_the_index_of_nvml_is_not_that_of_cuda(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    first = NvidiaCard(Power(time, watts=70), uuid="GPU-xx", bus="00000000:06:00.0", name="NVIDIA T4")
    gauge = opened(monkeypatch, first, NvidiaCard(Power(time)))
    assert gauge.read().watts == 300, "cuda:0 is the second card of NVML"
    unnamed = Device(framework="jax", id="cuda:0", name="NVIDIA T4")
    assert "UUID or PCI address" in refused(monkeypatch, first, device=unnamed)


def test_a_card_that_may_not_be_seen_does_not_hide_the_others(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = NvidiaCard(Power(time), uuid="GPU-xx", hidden=True)
    assert opened(monkeypatch, hidden, NvidiaCard(Power(time))).read().watts == 300


def test_a_virtual_gpu_has_no_energy(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "virtual GPU" in refused(monkeypatch, NvidiaCard(Power(time), virtual=True))


@pytest.mark.parametrize(("name", "coupled"), [("NVIDIA GH200 480GB", False), ("NVIDIA X", True)])
def test_the_counter_of_a_gh200_covers_the_whole_module(
    name: str, coupled: bool, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Power(time, watts=600)
    gauge = opened(monkeypatch, NvidiaCard(module, name=name, coupled=coupled, module_watts=600.0))
    assert (gauge.source, gauge.scope) == ("NVML energy counter", "module (GPU and CPU)")
    assert gauge.read().watts == 600


def test_power_of_a_gh200_is_named_for_what_it_covers(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    power = Power(time, watts=400)
    whole = opened(monkeypatch, NvidiaCard(power, name="GH200", coupled=True, counter=None, module_watts=600))
    assert (whole.scope, whole.read().watts) == ("module (GPU and CPU)", 600)
    gpu = opened(monkeypatch, NvidiaCard(power, name="GH200", coupled=True, counter=None))
    assert (gpu.scope, gpu.read().watts) == ("card", 400)
    counted = opened(monkeypatch, NvidiaCard(power, name="GH200", coupled=True))
    assert counted.scope == "module (GPU and CPU)"
    assert counted.read().watts is None, "the power of the GPU is not that of the module"


def test_a_b200_is_no_module(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(monkeypatch, NvidiaCard(Power(time), name="NVIDIA B200")).scope == "card"


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x0, ()),
        (0x1 | 0x2 | 0x100, ()),
        (0x4, ("power limit",)),
        (0x20 | 0x40 | 0x8, ("temperature",)),
        (0x80 | 0x8, ("power brake",)),
        (0x8, ("hardware slowdown",)),
        (0x4 | 0x20, ("power limit", "temperature")),
    ],
)
def test_throttling_in_plain_words(bits: int, words: tuple[str, ...]) -> None:
    assert nvidia.throttled(bits) == words


def test_throttling_is_read_from_old_libraries_too(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    gauge = opened(monkeypatch, NvidiaCard(Power(time), reasons=0x20), old=True)
    assert gauge.read().throttled == ("temperature",)


def test_a_card_that_is_lost_ends_in_an_error(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    card = NvidiaCard(Power(time))
    gauge = opened(monkeypatch, card)
    card.lost = True
    with pytest.raises(OutpaceError, match="GPU is lost"):
        gauge.read()


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(OutpaceError) as error:
        nvidia.open(A100)
    assert "pip install nvidia-ml-py" in str(error.value.hint)
