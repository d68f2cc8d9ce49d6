"""Measurements, comparisons and traces as text."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import comparison
from outpace.records import (
    Environment,
    Finding,
    Host,
    Measurement,
    Operator,
    OperatorShare,
    StepMemory,
    Trace,
)
from outpace.report import measurement as report
from tests.measurements import HOST, METHOD, measurement, several

MEMORY = StepMemory(
    parameters_bytes=97 * 2**20,
    gradients_bytes=97 * 2**20,
    optimizer_state_bytes=195 * 2**20,
    activations_bytes=9 * 2**30,
)


def share(index: int, **known: object) -> OperatorShare:
    facts: dict[str, object] = {
        "kind": "convolution",
        "name": "aten.convolution_backward",
        "phase": "backward",
        "dtype": "fp32",
        "inputs": ((64, 256, 56, 56), (64, 256, 1, 1)),
        "count": index + 1,
        "share_of_step": 0.3 / (index + 1),
        "seconds": 0.003 / (index + 1),
        "limit_seconds": 0.001,
        "limited_by": "compute",
        "sentence": f"sentence {index} of what holds it back, at 33% of the limit: its kernel is slow",
    }
    return OperatorShare(**(facts | known))  # type: ignore[arg-type]


FULL = measurement(
    limit_seconds=0.003,
    share_of_limit=0.3,
    limit_source="datasheet of NVIDIA H100 SXM 80GB, dense peaks",
    limit_missing_because=None,
    bound_by="device",
    data_seconds=0.001,
    memory=MEMORY,
    joules_per_sample=0.0625,
    joules_per_epoch=80_000.0,
    mean_watts=400.0,
    idle_watts=72.5,
    energy_source="NVML energy counter",
    energy_scope="card",
    energy_missing_because=None,
    loss_first=2.3,
    loss_last=0.1,
    operators=[share(index) for index in range(8)],
    findings=[
        Finding(what="data", sentence="30% of each step (3.00 ms) is spent waiting for the next batch"),
        Finding(
            what="compilation", sentence="the first step took 1 min 00 s, " + "many words " * 20 + "in all"
        ),
    ],
    notes=["a note of the script"],
)


def shown(found: Measurement) -> str:
    """As one paragraph, since sentences are wrapped."""
    return " ".join(report.measurement(found).split())


def test_the_whole_text() -> None:
    text = report.measurement(FULL)
    assert text.startswith("cnn on cuda:0 (NVIDIA H100 80GB HBM3, CUDA 12.8, h100-sxm-80gb)\n")
    one = shown(FULL)
    for part in (
        "speed 6,400 samples/s; 10.0 ms per step of 64 (9.90 ms to 10.1 ms at 95%)",
        "limit 3.00 ms per step, so 30.0% of the limit is reached (datasheet of NVIDIA H100 SXM 80GB, dense",
        "waits for the device: computing and moving data",
        "start-up 2.00 s before the first step, 12 steps of warm-up (1.50 s)",
        "data 1.00 ms per step waiting for batches (10%)",
        "432 MiB peak (torch.cuda); parameters 97.0 MiB, gradients 97.0 MiB, optimizer 195 MiB, activations",
        "energy 0.0625 J per sample, 80.0 kJ per epoch, 400 W (72.5 W idle) (NVML energy counter, card)",
        "loss 2.30 → 0.100",
        "measured 300 steps in 30 windows, 3.00 s",
        "note: a note of the script",
        "Most of the time goes to:",
    ):
        assert part in one
    assert "not measured" not in one


def test_no_line_is_longer_than_a_terminal() -> None:
    assert max(map(len, report.measurement(FULL).splitlines())) <= report.WIDTH
    host = Host(name="here", system="Linux", cpu="Intel(R) Xeon(R) Platinum 8480C", cores=3.5)
    cpu = msgspec.structs.replace(
        FULL, device="cpu", target="bert_base", environment=Environment(host=host, versions={})
    )
    assert max(map(len, report.measurement(cpu).splitlines())) <= report.WIDTH
    long = msgspec.structs.replace(
        FULL,
        target="train.py",
        args=["--epochs", "3", "--batch-size", "256", "--learning-rate", "0.1", "--data", "imagenet"],
    )
    assert max(map(len, report.measurement(long).splitlines())) <= report.WIDTH
    both = comparison.paired([FULL, FULL], [long, long], names=("cnn --epochs 3", "cnn --epochs 3 " * 9))
    assert max(map(len, report.comparison(both).splitlines())) <= report.WIDTH


def test_what_is_not_known_has_a_reason() -> None:
    text = shown(measurement())
    assert "limit not known: no operators of the step could be recorded" in text
    assert "energy not measured: the counter is missing" in text
    assert "None" not in text


def test_bare_measurements_show_nothing_of_none() -> None:
    bare = measurement(
        device=None,
        device_name=None,
        samples_per_second=None,
        samples_per_step=None,
        startup_seconds=None,
        peak_bytes=None,
    )
    text = shown(bare)
    assert "None" not in text
    assert "samples/s" not in text
    assert text.startswith("cnn on a device that was not seen")
    for row in ("memory", "loss", "data ", "waits for"):
        assert f" {row} " not in text


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("data", "the next batch is not ready"),
        ("host", "calls of operators"),
        ("device", "computing and moving"),
    ],
)
def test_what_it_is_bound_by(bound: str, said: str) -> None:
    assert f"waits for {'' if bound == 'data' else 'the '}{bound}: " in shown(measurement(bound_by=bound))
    assert said in shown(measurement(bound_by=bound))


sentences = st.lists(
    st.lists(
        st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12), min_size=1
    ).map(" ".join),
    max_size=9,
)


@given(sentences, sentences)
def test_every_finding_and_note_is_shown(findings: list[str], notes: list[str]) -> None:
    found = measurement(
        findings=[Finding(what="data", sentence=sentence) for sentence in findings], notes=notes
    )
    text = report.measurement(found)
    one = " ".join(text.split())
    assert all(f"- {sentence}" in one for sentence in findings)
    assert all(f"note: {sentence}" in one for sentence in notes)
    assert max(map(len, text.splitlines())) <= report.WIDTH


def test_the_greatest_operators_and_why() -> None:
    one = shown(FULL)
    for index in range(report.MOST_OPERATORS):
        assert f"sentence {index} " in one
    assert f"sentence {report.MOST_OPERATORS} " not in one
    assert "30% convolution_backward 64x256x56x56 fp32, backward" in one
    assert "15% 2 x convolution_backward" in one
    untimed = [share(0, share_of_step=None, seconds=None)]
    assert "Most of the limit is:" in shown(measurement(operators=untimed))


def test_energy_of_a_model_says_so() -> None:
    estimated = measurement(
        joules_per_sample=0.07,
        mean_watts=455.0,
        energy_source="model: 65% of the board's 700 W",
        energy_scope="card",
        energy_caveat="not measured; trainings take 15% to 95% of that power",
    )
    one = shown(estimated)
    assert (
        "0.0700 J per sample, 455 W (model: 65% of the board's 700 W, card; not measured; trainings take"
        in one
    )


def test_a_part_of_a_card_and_repeats() -> None:
    found = measurement(part="MIG slice 1g.10gb", method=msgspec.structs.replace(METHOD, repeats=5))
    assert "MIG slice 1g.10gb of h100-sxm-80gb" in shown(found)
    assert "the middle one of 5 processes" in shown(found)


@pytest.mark.parametrize(
    ("b", "said"),
    [
        (0.005, "B is 2.00 times as fast as A (2.00 to 2.00 at 95%)"),
        (0.020, "B is slower: 0.500 times as fast as A"),
        (0.010, "not different: B is 1.00 to 1.00 times as fast as A (95%)"),
    ],
)
def test_verdicts(b: float, said: str) -> None:
    found = comparison.paired(several(0.01, 0.01), several(b, b), names=("cnn", "cnn --device cpu"))
    text = report.comparison(found)
    one = " ".join(text.split())
    assert said in one
    assert "A: cnn" in one
    assert "B: cnn --device cpu" in one
    assert "A 10.0 ms, 10.0 ms per step" in one


def test_what_else_a_comparison_says() -> None:
    a = several(0.01, 0.01, joules_per_sample=1.0, energy_source="NVML energy counter", energy_scope="card")
    b = [
        msgspec.structs.replace(one, joules_per_sample=0.5, peak_bytes=216 * 2**20, args=["--amp"])
        for one in a
    ]
    one = " ".join(report.comparison(comparison.paired(a, b, names=("a", "b"))).split())
    assert "energy B takes 0.500 times the joules per sample" in one
    assert "memory B takes 0.500 times the memory" in one
    assert "also different: arguments: none / --amp" in one
    apart = comparison.apart(measurement(), measurement(), names=("a", "b"))
    assert "note: measured apart, one process each" in report.comparison(apart)


def test_a_trace() -> None:
    operator = Operator(
        kind="matmul",
        name="aten.mm",
        phase="forward",
        dtype="fp32",
        inputs=((512, 512), (512, 256)),
        flops=10**9,
        bytes_read=2**20,
        count=3,
        guessed=True,
    )
    found = Trace(
        outpace="1",
        target="cnn",
        script="s",
        args=["--lr", "1"],
        framework="torch",
        host=HOST,
        device="cpu",
        samples=64,
        operators=[operator],
        memory=MEMORY,
        notes=["guessed"],
    )
    one = " ".join(report.trace(found).split())
    assert one.startswith("cnn --lr 1: one training step, torch, on cpu")
    for part in (
        "samples 64",
        "calls 3",
        "arithmetic 3.00 GFLOP",
        "per sample 46.9 MFLOP",
        "traffic 3.00 MiB read and written",
        "forward 3.00 GFLOP in 3 calls",
        "backward 0 FLOP in 0 calls",
        "100% 3 x aten.mm 512x512 512x256 fp32, forward (guessed)",
        "note: guessed",
    ):
        assert part in one
    assert max(map(len, report.trace(found).splitlines())) <= report.WIDTH
    empty = msgspec.structs.replace(found, operators=[], samples=None, memory=None)
    assert "samples not known" in " ".join(report.trace(empty).split())
