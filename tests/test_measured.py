"""From the events of a simulated training to its measurement."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from outpace import measured, protocol
from outpace.errors import OutpaceError
from outpace.protocol import Plan
from outpace.records import Ceilings, Device, Measurement, to_json
from tests.measurements import CEILINGS
from tests.simulated import Tracing, World, product

GPU = Device(
    framework="torch", id="cuda:0", name="NVIDIA H100 80GB HBM3", card="h100-sxm-80gb", part="MIG 1g.10gb"
)


def of(
    world: World, *, ceilings: Ceilings | None = None, device: Device | None = GPU, **known: Any
) -> Measurement:
    collector = world.collector()
    run = collector.record(state="stopped", seconds=world.clock)
    found = measured.of_run(run, collector, device=device, ceilings=ceilings, **known)
    assert msgspec.json.decode(to_json(found), type=Measurement) == found
    return found


def trained(
    plan: Plan | None = None, *, samples: int | None = 64, host: float = 0.01, lag: float = 0.0
) -> World:
    world = World(plan or Plan(), host=host, lag=lag)
    world.tracers = [Tracing(world, [product(count=3, seconds=0.002)])]
    world.begin()
    world.until_over(lambda: world.step(samples))
    return world


def sentences(found: Measurement) -> dict[str, str]:
    return {finding.what: finding.sentence for finding in found.findings}


def test_a_device_behind_the_host() -> None:
    found = of(trained(host=0.001, lag=0.010), ceilings=CEILINGS)
    assert found.samples_per_second == pytest.approx(6400, rel=0.01)
    assert found.step_seconds.low <= found.step_seconds.median <= found.step_seconds.high
    assert found.step_seconds.least <= found.step_seconds.low
    assert found.step_seconds.high <= found.step_seconds.most
    assert found.step_seconds.median == pytest.approx(0.010, rel=0.01)
    assert found.samples_per_step == 64
    assert (found.method.clock, found.method.settled) == ("waited", True)
    assert found.method.windows == len(found.window_seconds)
    assert found.method.seconds == pytest.approx(found.method.steps * 0.010, rel=0.01)
    assert found.bound_by == "device"
    assert "sees 1.00 ms per step, and a step takes 10.0 ms" in sentences(found)["ahead"]
    assert (found.card, found.part) == ("h100-sxm-80gb", "MIG 1g.10gb")


def test_a_synchronous_device() -> None:
    found = of(trained(host=0.010), device=None)
    assert found.method.clock == "host"
    assert found.waited_seconds is None
    assert found.samples_per_second == pytest.approx(6400, rel=0.01)
    assert "ahead" not in sentences(found)


def test_the_limit_is_of_the_traced_step() -> None:
    found = of(trained(lag=0.010), ceilings=CEILINGS)
    limit = 3 * max(2 * 512**3 / 10e12, 3 * 4 * 512**2 / 4e12)
    assert found.limit_seconds == pytest.approx(limit)
    assert found.share_of_limit == pytest.approx(limit / found.step_seconds.median)
    assert found.limit_missing_because is None
    assert found.flops_per_second == pytest.approx(3 * 2 * 512**3 / found.step_seconds.median)
    assert found.flops_per_sample == pytest.approx(3 * 2 * 512**3 / 64)
    assert (found.calls, found.launch_seconds) == (3, CEILINGS.launch_seconds)
    (operator,) = found.operators
    assert operator.seconds == pytest.approx(0.002), "as it was timed: the rest of the step is not its"
    assert found.trace is not None
    assert found.trace.samples == 64


def test_without_a_trace_or_ceilings_the_reason_is_told() -> None:
    assert "no operators" in (of(trained(Plan(trace=False)), ceilings=CEILINGS).limit_missing_because or "")
    found = of(trained(), no_ceilings_because="no datasheet facts of X are known")
    assert found.limit_missing_because == "no datasheet facts of X are known"
    assert (found.limit_seconds, found.share_of_limit, found.operators) == (None, None, [])


def test_samples_that_are_not_known_are_no_rate() -> None:
    found = of(trained(samples=None))
    assert found.samples_per_second is None
    assert found.samples_per_step is None
    assert found.step_seconds.median == pytest.approx(0.010, rel=0.01)


def test_partial_batches_and_evaluations_are_told_and_left_out() -> None:
    world = World(Plan(seconds=10.0), lag=0.008)

    def epoch() -> None:
        for index in range(30):
            world.step(64, interrupted=index == 0 and world.steps > 1)
        world.step(5, host=0.002, lag=0.001)
        world.evaluate(2.0, fetching=1.5)

    world.begin()
    world.until_over(epoch)
    found = of(world)
    assert found.samples_per_second == pytest.approx(6400, rel=0.02)
    assert "partial batch (5 instead of 64 samples)" in sentences(found)["partial batches"]


def test_data_that_evaluations_wait_for_is_not_the_trainings() -> None:
    world = World(Plan(seconds=10.0), lag=0.008)

    def epoch() -> None:
        for index in range(60):
            world.fetching += 0.001
            world.step(64, interrupted=index == 0 and world.steps > 1)
        world.evaluate(2.0, fetching=1.5)

    world.begin()
    world.until_over(epoch)
    found = of(world)
    assert found.data_seconds == pytest.approx(0.001, rel=0.1)
    assert found.bound_by != "data"


def test_waiting_for_data_is_named() -> None:
    world = World(Plan(), host=0.010)

    def step() -> None:
        world.fetching += 0.007
        world.step(64)

    world.begin()
    world.until_over(step)
    found = of(world)
    assert found.data_seconds == pytest.approx(0.007, rel=0.02)
    assert found.bound_by == "data"
    assert "70% of each step" in sentences(found)["data"]


def test_a_first_step_of_a_minute_is_no_part_of_the_rate() -> None:
    world = World(Plan(), lag=0.008)
    world.begin()
    world.until_over(lambda: world.step(64, host=0.01 if world.steps else 60.0))
    found = of(world)
    assert found.first_step_seconds == pytest.approx(60, rel=0.01)
    assert found.samples_per_second == pytest.approx(6400, rel=0.01)
    assert found.method.warm_up_seconds > 60
    assert "compilation" in sentences(found)


@pytest.mark.parametrize("lag", [0.0, 0.12])
def test_a_script_that_ends_early(lag: float) -> None:
    world = World(Plan(), host=0.12 if not lag else 0.01, lag=lag)
    world.begin()
    for _ in range(5):
        world.step(64)
    found = of(world)
    assert found.samples_per_second == pytest.approx(64 / 0.12, rel=0.02)
    assert not found.method.settled
    assert found.method.clock == ("waited" if lag else "host")
    assert "never became steady" in sentences(found)["unsteady"]


def test_a_script_over_before_the_device_was_waited_for_says_so() -> None:
    world = World(Plan(), host=0.001, lag=0.010)
    world.begin()
    for _ in range(5):
        world.step(64)
    world.events = [event for event in world.events if not isinstance(event, protocol.Edge)]
    found = of(world)
    assert found.method.clock == "host"
    assert found.waited_seconds is None
    assert "the step time is the host's" in sentences(found)["ahead"]


def test_too_few_steps_are_an_error_with_a_way_out() -> None:
    world = World(Plan(), lag=0.010)
    world.begin()
    world.told(64)
    world.told(64, interrupted=True)
    world.emit(protocol.Phase(at=world.now(), name="measuring"))
    with pytest.raises(OutpaceError, match="only 2 training steps were seen") as refused:
        of(world)
    assert refused.value.hint


def test_what_the_meter_knows_goes_in() -> None:
    world = trained(lag=0.008)
    world.emit(protocol.Progress(epoch=1, steps_per_epoch=100))
    metered = {
        "joules_per_sample": 0.5,
        "mean_watts": 320.0,
        "energy_source": "NVML energy counter",
        "throttled": {"power limit": 0.4},
    }
    found = of(world, metered=metered)
    assert (found.joules_per_sample, found.mean_watts) == (0.5, 320.0)
    assert found.joules_per_epoch == pytest.approx(0.5 * 64 * 100)
    assert sentences(found)["throttling"] == "the device was held back: power limit (40% of the time)"
    missing = of(world, metered={"energy_missing_because": "no counter"})
    assert (missing.joules_per_sample, missing.joules_per_epoch, missing.mean_watts) == (None, None, None)
    assert missing.energy_missing_because == "no counter"
    assert "throttling" not in sentences(missing)


def test_samples_of_a_span() -> None:
    world = trained(lag=0.008)
    collector = world.collector()
    span = measured.span_of(collector)
    inside = [end for end in collector.ends if span.start < end <= span.end]
    assert measured.samples_in(collector, span) == 64 * len(inside)
    collector.samples[-1] = None
    assert measured.samples_in(collector, span) is None
    assert measured.samples_in(collector, measured.Span(math.inf, math.inf, settled=True)) is None


def test_losses_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    world = trained(lag=0.008)
    world.emit(protocol.Losses(steps=[0, 1, 2, 3], values=[3.0, None, 2.0, None]))
    found = of(world)
    assert (found.loss_first, found.loss_last, found.nonfinite_losses) == (3.0, 2.0, 2)
    assert "not finite in 2 steps" in sentences(found)["loss"]
    assert found.environment.variables["CUDA_VISIBLE_DEVICES"] == "3"
    assert "XLA_FLAGS" not in found.environment.variables


def test_the_host_does_not_start_the_operators_of_compiled_code_one_by_one() -> None:
    world = trained(lag=0.008)
    for index, event in enumerate(world.events):
        if isinstance(event, protocol.Traced):
            world.events[index] = msgspec.structs.replace(event, framework="jax")
    found = of(world, ceilings=CEILINGS)
    assert found.launch_seconds is None
    assert found.bound_by != "host"
