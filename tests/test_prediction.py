"""The model of a step: physical bounds, monotonic in what a card offers, honest where it does not know."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.cards import load
from outpace.errors import UsageError
from outpace.prediction import (
    coefficients,
    costs,
    data_parallel,
    energy,
    hardware,
    intervals,
    known,
    launches,
    memory,
    one_card,
    parts,
    precision,
    step,
    tiles,
    whole,
)
from outpace.prediction.options import Options
from outpace.records import Card, Operator, Prediction, Trace
from tests.predictions import convolution, light, matmul, operators, recurrent, steps, trace

MODEL = coefficients.load()
A100 = load()["a100-sxm-80gb"]
V100 = load()["v100-sxm2-32gb"]
PASCAL = load()["gtx-1080-ti"]


def predicted(given: Trace | None = None, card: Card = A100, **options: Any) -> Prediction:
    return whole.predict(given or trace(), card, Options(**options), MODEL)


def seconds(chosen: list[Operator], card: Card) -> float:
    return step.of_operators(chosen, card, MODEL).seconds


def faster(card: Card, **factors: float) -> Card:
    """The same card with more bandwidth or higher peaks."""
    changes: dict[str, Any] = {}
    if "bandwidth" in factors:
        changes["memory_bandwidth_bytes_per_second"] = (
            card.memory_bandwidth_bytes_per_second or 0.0
        ) * factors["bandwidth"]
    for name in ("matrix_flops_per_second", "vector_flops_per_second"):
        if "peak" in factors:
            changes[name] = {dtype: rate * factors["peak"] for dtype, rate in getattr(card, name).items()}
    return msgspec.structs.replace(card, **changes)


@settings(max_examples=60, deadline=None)
@given(chosen=steps, factor=st.floats(1.01, 8.0), card=st.sampled_from([A100, V100, PASCAL, load()["mi210"]]))
def test_more_bandwidth_or_a_higher_peak_is_never_slower(
    chosen: list[Operator], factor: float, card: Card
) -> None:
    now = seconds(chosen, card)
    assert now > 0
    assert seconds(chosen, faster(card, bandwidth=factor)) <= now * (1 + 1e-9)
    assert seconds(chosen, faster(card, peak=factor)) <= now * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(chosen=steps, more=operators, card=st.sampled_from([A100, PASCAL]))
def test_more_work_is_never_faster(chosen: list[Operator], more: Operator, card: Card) -> None:
    assert seconds([*chosen, more], card) > seconds(chosen, card)


@settings(max_examples=60, deadline=None)
@given(chosen=steps, card=st.sampled_from(sorted(load())), asked=st.sampled_from(precision.PRECISIONS))
def test_intervals_are_ordered_and_records_survive_json(
    chosen: list[Operator], card: str, asked: str
) -> None:
    found = predicted(trace(*chosen), load()[card], precision=asked, samples=10**6, largest_batch=True)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Prediction) == found
    if found.missing_because is not None:
        assert found.step_seconds is None
        return
    for name in (
        "step_seconds",
        "samples_per_second",
        "peak_bytes",
        "joules_per_sample",
        "watts",
        "total_seconds",
    ):
        interval = getattr(found, name)
        if interval is not None:
            assert 0 < interval.low <= interval.mid <= interval.high < math.inf, name
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert found.limited_by == max(found.shares, key=lambda name: found.shares[name])


@pytest.mark.parametrize("card", sorted(load()))
def test_no_card_sustains_more_than_its_datasheet(card: str) -> None:
    for unit, rates in (
        ("matrix", load()[card].matrix_flops_per_second),
        ("vector", load()[card].vector_flops_per_second),
    ):
        for dtype in rates:
            rate = hardware.peak(load()[card], unit, dtype, MODEL)
            datasheet = hardware.datasheet_peak(load()[card], unit, dtype)
            if rate is not None and datasheet is not None:
                assert 0 < rate.value < datasheet


def test_large_products_come_near_the_sustained_peak_and_thin_ones_do_not() -> None:
    large = step.of_operators([matmul(8192, 8192, 8192)], V100, MODEL)
    assert 0.6 < large.used["vector"] < 1.0
    thin = step.of_operators([matmul(8192, 8192, 1)], V100, MODEL)
    assert thin.shares["memory bandwidth"] > 0.9


def test_an_unseen_architecture_is_like_the_nearest_of_its_vendor() -> None:
    assert hardware.nearest(load()["h100-sxm-80gb"], ("pascal", "ampere", "volta")) == "ampere"
    assert hardware.nearest(load()["max-1550"], ("pascal", "ampere")) is None
    rate = hardware.peak(load()["h100-sxm-80gb"], "matrix", "bf16", MODEL)
    seen = hardware.peak(A100, "matrix", "bf16", MODEL)
    assert rate is not None
    assert seen is not None
    assert rate.value > seen.value
    assert rate.sd > seen.sd


def test_waste_of_tiles() -> None:
    assert tiles.waste(8192, 8192, 8192, 1, 80, "vector") < 1.1
    assert tiles.waste(1, 8192, 8192, 1, 80, "vector") > 10
    assert tiles.waste(0, 5, 5, 1, 80, "vector") == 1.0
    assert tiles.waste(128, 128, 64, 1, 108, "matrix") > 5


def test_a_backward_convolution_is_two_parts_with_the_flops_of_one_operator() -> None:
    shapes = ((32, 64, 56, 56), (32, 64, 56, 56), (64, 64, 3, 3))
    both = convolution(
        phase="backward",
        name="aten.convolution_backward",
        inputs=shapes,
        attributes={"stride": (1, 1), "groups": 1, "gradients": "both"},
    )
    found = parts.of_operator(both, V100)
    assert [part.name for part in found] == ["convolution 3x3 data", "convolution 3x3 weight"]
    assert sum(part.flops for part in found) == both.flops


def test_depthwise_and_untuned_groups_are_computed_by_vector_units() -> None:
    assert parts.of_operator(convolution(groups=64, dtype="fp16"), A100)[0].unit == "vector"
    last = {"stride": (1, 1), "groups": 2, "layout": "channels_last"}
    assert parts.of_operator(convolution(groups=2, dtype="fp16", attributes=last), A100)[0].unit == "vector"
    assert parts.of_operator(convolution(dtype="fp16"), A100)[0].unit == "matrix"


def test_an_rnn_is_its_time_steps_and_what_is_computed_at_once() -> None:
    forward = parts.of_operator(recurrent(), V100)
    assert [part.name for part in forward] == ["rnn forward", "matmul"]
    assert forward[0].times == 100
    assert sum(part.flops * part.times for part in forward) == recurrent().flops
    backward = parts.of_operator(recurrent("backward"), V100)
    assert sum(part.flops * part.times for part in backward) == recurrent("backward").flops


def test_layout_conversions_only_for_matrix_units_without_channels_last() -> None:
    assert parts.converted_bytes(convolution(dtype="fp16"), "matrix") > 0
    assert parts.converted_bytes(convolution(), "vector") == 0
    last = convolution(dtype="fp16", attributes={"layout": "channels_last"})
    assert parts.converted_bytes(last, "matrix") == 0


def test_an_unknown_operator_is_named_and_bounded() -> None:
    odd = light("other", "aten.mystery", guessed=True)
    found = predicted(trace(matmul(), odd))
    assert any("aten.mystery" in warning for warning in found.warnings)
    without = predicted(trace(matmul()))
    assert found.step_seconds is not None
    assert without.step_seconds is not None
    bound = (odd.bytes_read + odd.bytes_written) / (A100.memory_bandwidth_bytes_per_second or 1)
    assert found.step_seconds.mid > without.step_seconds.mid + 0.8 * bound


def test_autocast_halves_products_and_keeps_losses() -> None:
    written = [matmul(), light("softmax", "aten._log_softmax"), matmul(phase="backward")]
    found = precision.of_step(written, "fp16-amp", A100, parameter_bytes=2**20, tf32_by_default=False)
    by_name = {(one.name, one.phase): one for one in found}
    assert by_name["aten.mm", "forward"].dtype == "fp16"
    assert by_name["aten.mm", "forward"].bytes_read == matmul().bytes_read // 2
    assert by_name["aten._log_softmax", "forward"].dtype == "fp32"
    assert ("autocast of weights", "forward") in by_name
    assert any("unscale" in name for name, _ in by_name)


def test_a_step_that_was_traced_in_16_bits_is_not_cast_again() -> None:
    half = [matmul(dtype="fp16"), light("softmax", "aten._log_softmax")]
    assert precision.of_step(half, "fp16-amp", A100, parameter_bytes=2**20, tf32_by_default=False) == half
    traced = trace(*half, settings={"precision": "fp16-amp"})
    assert predicted(traced).precision == "fp16-amp"


def test_tf32_only_where_script_and_card_have_it() -> None:
    def kind(asked: str, card: Card) -> str:
        found = precision.of_step([convolution()], asked, card, parameter_bytes=0, tf32_by_default=False)
        return found[0].dtype

    assert kind("as written", A100) == "tf32"
    assert kind("as written", V100) == "fp32"
    assert kind("fp32", A100) == "fp32"
    as_products = precision.of_step([matmul()], "as written", A100, parameter_bytes=0, tf32_by_default=True)
    assert as_products[0].dtype == "tf32"


@pytest.mark.parametrize(
    ("card", "asked"),
    [("v100-sxm2-32gb", "bf16-amp"), ("t4", "tf32"), ("m1", "fp16-amp"), ("m4", "as written")],
)
def test_what_a_card_lacks_gives_no_prediction_and_the_reason(card: str, asked: str) -> None:
    found = predicted(card=load()[card], precision=asked)
    assert found.step_seconds is None
    assert found.missing_because


def test_optimizers_are_grouped_as_accelerators_do() -> None:
    single = [light(phase="optimizer", name="aten.mul", size=100, count=161)]
    found = launches.grouped_optimizer(single)
    assert launches.calls(found) == math.ceil(161 / 40)
    moved = sum(one.bytes_read * one.count for one in found)
    assert moved == pytest.approx(single[0].bytes_read * 161, rel=0.01)


def test_small_steps_are_bound_by_the_host_and_compiling_helps() -> None:
    small = trace(*(light(size=1024, count=100) for _ in range(3)))
    eager, compiled = predicted(small, mode="eager"), predicted(small, mode="compiled")
    assert eager.limited_by == "host launches"
    assert eager.step_seconds is not None
    assert compiled.step_seconds is not None
    assert compiled.step_seconds.mid < 0.7 * eager.step_seconds.mid
    slow = predicted(small, host_microseconds=60.0)
    assert slow.step_seconds is not None
    assert slow.step_seconds.mid > 3 * eager.step_seconds.mid


def test_memory_grows_with_the_batch_and_says_when_it_does_not_fit() -> None:
    held = memory.footprint(trace(), trace().operators, "fp32", A100, MODEL.memory)
    assert held is not None
    assert memory.peak(held, MODEL.memory).mid > 2**28 + 2**28 + 2**29 + 2**31
    assert memory.fits(memory.peak(held, MODEL.memory), A100) == "yes"
    assert memory.fits(memory.peak(held, MODEL.memory, 100), A100) == "no"
    most = memory.largest_batch(held, 32, A100, MODEL.memory)
    assert most is not None
    at_most = memory.peak(held, MODEL.memory, most.samples / 32)
    assert at_most.high <= (A100.memory_bytes or 0) * (1 - memory.RESERVE)
    assert (
        memory.peak(held, MODEL.memory, (most.samples + 1) / 32).high
        > (A100.memory_bytes or 0) * 0.95 * 0.999
    )
    assert memory.footprint(trace(memory=None), trace().operators, "fp32", A100, MODEL.memory) is None


@given(share=st.floats(0.05, 0.999))
def test_a_tighter_power_limit_is_a_slower_clock(share: float) -> None:
    floor = MODEL.energy.voltage_floor
    assert 0 < energy.clock_at(share * 0.99, floor) < energy.clock_at(share, floor) < 1.0


def test_power_limits() -> None:
    used, none = {"vector": 0.9, "memory": 0.4}, None
    free = energy.draw(used, 1.0, V100, MODEL.energy, none)
    capped = energy.draw(used, 1.0, V100, MODEL.energy, 150.0)
    assert free is not None
    assert capped is not None
    assert capped.watts <= 150.0 < free.watts <= 300.0
    assert capped.slowdown > 1.0
    assert energy.draw(used, 1.0, load()["gh200-96gb"], MODEL.energy, none) is None
    with pytest.raises(UsageError, match="cannot be limited"):
        energy.check_limit(V100, 5.0)


def test_cards_together() -> None:
    assert data_parallel.split("8xh100-sxm-80gb") == (8, "h100-sxm-80gb")
    assert data_parallel.split("xeon-8280") == (1, "xeon-8280")
    with pytest.raises(UsageError):
        data_parallel.split("0xt4")
    one = data_parallel.exchange(A100, 1, 2**28, 0.1, MODEL.links)
    few = data_parallel.exchange(A100, 8, 2**28, 0.0, MODEL.links)
    many = data_parallel.exchange(A100, 64, 2**28, 0.0, MODEL.links)
    assert one.seconds == 0 < few.seconds < many.seconds
    hidden = data_parallel.exchange(A100, 8, 2**28, 10.0, MODEL.links)
    assert hidden.exposed < few.exposed


def test_one_measurement_moves_the_prediction_towards_it_and_narrows_it() -> None:
    given, card = trace(), load()["h100-pcie-80gb"]
    before = predicted(given, card)
    assert before.step_seconds is not None
    slow = 1.5 * before.step_seconds.mid
    correction = one_card.corrected([(given, slow)], card, Options(), MODEL)
    after = whole.predict(given, card, Options(), MODEL, correction=correction)
    assert after.step_seconds is not None
    assert before.step_seconds.mid < after.step_seconds.mid < slow
    assert after.basis == "calibrated"
    width = after.step_seconds.high / after.step_seconds.mid
    assert width < before.step_seconds.high / before.step_seconds.mid
    assert known.correction([], {}, 0.1) == known.Correction({}, 1.0, {})


def test_where_no_card_of_a_vendor_was_measured_the_roofline_is_told() -> None:
    found = predicted(trace(matmul(dtype="bf16")), load()["max-1550"])
    assert found.basis == "roofline"
    assert found.step_seconds is not None
    near = predicted(trace(matmul(dtype="bf16")), A100)
    assert near.step_seconds is not None
    assert found.step_seconds.high / found.step_seconds.low > near.step_seconds.high / near.step_seconds.low
    assert any("roofline" in warning for warning in found.warnings)


def test_the_cost_of_a_part_is_at_least_each_of_its_halves() -> None:
    part = parts.of_operator(matmul(), V100)[0]
    sheet = step.sheet_of(V100, [part], MODEL, {})
    cost = costs.seconds(part, sheet, MODEL)
    assert cost.seconds >= max(cost.compute, cost.memory)
    assert costs.roofline(part, V100) <= cost.seconds


def test_intervals() -> None:
    one = intervals.around(2.0, 0.1)
    assert one.low * one.high == pytest.approx(4.0)
    wide = intervals.around(2.0, 0.1, 2.0)
    assert wide.high > one.high
    assert intervals.inflated(one, 2.0).high == pytest.approx(wide.high)
    assert intervals.step_sd({}, {}, model=0.1, launching=1.0, host=0.5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"precision": "fp12"},
        {"mode": "magic"},
        {"samples": -5},
        {"samples": 5, "epochs": 2, "epoch_samples": 9},
        {"epochs": 3},
        {"host_microseconds": 0},
        {"power_limit_watts": float("nan")},
        {"usd_per_kwh": -1.0},
    ],
)
def test_nonsense_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Options(**wrong).check()


def test_money_and_whole_trainings() -> None:
    found = whole.predict(trace(), A100, Options(epochs=2, epoch_samples=1000), MODEL, usd_per_hour=2.0)
    assert found.usd is not None
    assert found.total_seconds is not None
    assert found.usd_samples == 2000
    assert found.usd.mid == pytest.approx(found.total_seconds.mid / 3600 * 2.0)
    electric = whole.predict(trace(), A100, Options(samples=2000, usd_per_kwh=0.3), MODEL)
    assert electric.usd is not None
    assert electric.joules_per_sample is not None
    assert electric.usd.mid == pytest.approx(electric.joules_per_sample.mid * 2000 * 0.3 / 3.6e6)
    assert predicted().usd is None


def test_eight_cards_are_nearly_eight_times_as_fast() -> None:
    one = predicted()
    eight = whole.predict(trace(), A100, Options(), MODEL, cards=8)
    assert one.samples_per_second is not None
    assert eight.samples_per_second is not None
    assert 4 < eight.samples_per_second.mid / one.samples_per_second.mid <= 8
