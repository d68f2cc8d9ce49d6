"""Events in, one record out."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import protocol
from outpace.collect import Collector, blank
from outpace.records import Run

BLANK = blank(target="t", script="/x/t.py", args=["-a"], started_at="2026-01-02T03:04:05Z")


def collected(*events: protocol.AnyEvent) -> Collector:
    collector = Collector(BLANK)
    for event in events:
        collector.take(protocol.decode(protocol.encode(event)))
    return collector


def test_a_whole_run() -> None:
    run = collected(
        protocol.Framework(name="torch", version="2.13.0"),
        protocol.Began(at=2.0),
        protocol.Place(device="cuda:0", name="NVIDIA L4", driver="CUDA 12.8"),
        protocol.Progress(epoch=1, epochs=2, steps_per_epoch=3),
        protocol.Steps(ends=[2.5, 2.75], samples=[8, 8], interrupted=[0]),
        protocol.Losses(steps=[0], values=[3.0]),
        protocol.Steps(ends=[3.0], samples=[4], interrupted=[0]),
        protocol.Losses(steps=[1, 2], values=[None, 1.0]),
        protocol.Metrics(at=3.0, step=3, values={"accuracy": 0.5}),
        protocol.Metrics(at=3.1, step=3, values={"accuracy": 0.75}),
        protocol.Note(text="look"),
        protocol.Ended(
            at=3.5, state="done", peak_bytes=7, peak_bytes_source="torch.cuda", versions={"torch": "2.13.0"}
        ),
    ).record()
    assert run.state == "done"
    assert (run.steps, run.samples, run.epochs) == (3, 20, 1)
    assert run.step_seconds == [0.5, 0.25, 0.25]
    assert run.step_samples == [(8, 2), (4, 1)]
    assert run.interrupted_steps == [0, 2]
    assert run.losses == [3.0, None, 1.0]
    assert run.nonfinite_losses == [1]
    assert run.metrics == {"accuracy": 0.75}
    assert run.metric_history == [(3, "accuracy", 0.5), (3, "accuracy", 0.75)]
    assert (run.device, run.device_name, run.device_driver) == ("cuda:0", "NVIDIA L4", "CUDA 12.8")
    assert (run.peak_bytes, run.peak_bytes_source) == (7, "torch.cuda")
    assert (run.startup_seconds, run.seconds) == (2.0, 3.5)
    assert run.notes == ["look"]


def test_a_restart_forgets_steps_and_losses_only() -> None:
    run = collected(
        protocol.Began(at=1.0),
        protocol.Steps(ends=[1.5], samples=[1]),
        protocol.Losses(steps=[0], values=[1.0]),
        protocol.Note(text="kept"),
        protocol.Restart(),
        protocol.Steps(ends=[2.0], samples=[9]),
    ).record()
    assert (run.steps, run.samples, run.losses, run.notes) == (1, 9, [], ["kept"])


def test_what_the_parent_knows_better_wins() -> None:
    run = collected(protocol.Steps(ends=[1.0], samples=[None])).record(state="killed", error="memory")
    assert (run.state, run.error, run.samples) == ("killed", "memory", None)
    assert run.step_samples == [(None, 1)]


@given(
    st.lists(st.tuples(st.floats(1e-4, 10), st.none() | st.integers(0, 512)), max_size=60), st.integers(1, 7)
)
def test_steps_survive_any_batching_of_events(steps: list[tuple[float, int | None]], chunk: int) -> None:
    ends, now = [], 1.0
    for seconds, _ in steps:
        now += seconds
        ends.append(now)
    samples = [size for _, size in steps]
    events: list[protocol.AnyEvent] = [protocol.Began(at=1.0)]
    events += [
        protocol.Steps(ends=ends[at : at + chunk], samples=samples[at : at + chunk])
        for at in range(0, len(steps), chunk)
    ]
    run = collected(*events).record()
    assert run.step_seconds == pytest.approx([seconds for seconds, _ in steps], abs=1e-6)
    assert [size for size, count in run.step_samples for _ in range(count)] == samples
    assert msgspec.json.decode(msgspec.json.encode(run), type=Run) == run
