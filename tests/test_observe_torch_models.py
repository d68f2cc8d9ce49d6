"""Whole models: published FLOPs, and the same trace on shapes alone as on values."""

from __future__ import annotations

from collections import Counter

import pytest
from bench.flops_models import PUBLISHED, Published, built_in, counted

from outpace.protocol import Traced


@pytest.mark.slow
@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name)
def test_published_flops_within_two_percent(published: Published) -> None:
    assert counted(published) == pytest.approx(published.flops, rel=0.02)


def _by_kind(trace: Traced) -> dict[tuple[str, str], tuple[int, int, int]]:
    totals: Counter[tuple[str, str, str]] = Counter()
    for operator in trace.operators:
        key = (operator.phase, operator.kind)
        totals[(*key, "flops")] += operator.flops * operator.count
        totals[(*key, "read")] += operator.bytes_read * operator.count
        totals[(*key, "written")] += operator.bytes_written * operator.count
    keys = {key[:2] for key in totals}
    return {key: tuple(totals[(*key, what)] for what in ("flops", "read", "written")) for key in keys}  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("cnn", ()),
        ("rnn", ()),
        ("resnet50", ("--batch-size", "1", "--image-size", "64")),
        ("bert_base", ("--batch-size", "1", "--sequence-length", "16")),
    ],
)
def test_shapes_alone_give_the_trace_of_the_real_step(script: str, args: tuple[str, ...]) -> None:
    fake, real = (built_in(script, *args, fakes=fakes) for fakes in (True, False))
    assert _by_kind(fake) == _by_kind(real)
    assert (fake.device, real.device) == ("meta", "cpu")
    assert all(operator.seconds is None for operator in fake.operators)
    assert not any(operator.guessed or operator.kind == "other" for operator in real.operators)
    assert fake.memory is not None
    assert real.memory is not None
    assert fake.memory.parameters_bytes == real.memory.parameters_bytes
    assert fake.memory.optimizer_state_bytes == real.memory.optimizer_state_bytes
    assert fake.memory.activations_bytes == pytest.approx(real.memory.activations_bytes, rel=0.001)


@pytest.mark.slow
def test_a_large_batch_needs_no_memory() -> None:
    trace = built_in("resnet50", "--batch-size", "256")
    assert trace.memory is not None
    assert trace.memory.activations_bytes is not None
    assert trace.memory.activations_bytes > 20e9
    assert any("made up" in note for note in trace.notes)
