"""The result as a few lines."""

from __future__ import annotations

import msgspec

from outpace.collect import blank
from outpace.report import text
from outpace.runs import Summary

RUN = msgspec.structs.replace(
    blank(target="cnn", script="/x/cnn.py", args=[], started_at="2026-01-02T03:04:05Z"),
    state="done",
    device="cuda:0",
    device_name="NVIDIA L4",
    device_driver="CUDA 12.8",
    seconds=75.0,
    startup_seconds=3.5,
    steps=1000,
    samples=63000,
    epochs=2,
    step_samples=[(64, 900), (54, 100)],
    losses=[2.3, *[0.5] * 899, *[0.1] * 100],
    metrics={"test_accuracy": 0.96789},
    peak_bytes=432 * 2**20,
    peak_bytes_source="torch.cuda",
    samples_per_second=4870.4,
    steady_steps=800,
)


def test_the_whole_result() -> None:
    assert text.run_result(RUN) == (
        "cnn on cuda:0 (NVIDIA L4, CUDA 12.8)\n"
        "  steps          1,000, 63,000 samples, 2 epochs\n"
        "  time           1 min 12 s after 3.50 s of start-up\n"
        "  speed          4,870 samples/s (13.1 ms per step of 64)\n"
        "  loss           2.30 → 0.100\n"
        "  test_accuracy  0.9679\n"
        "  memory         432 MiB peak (torch.cuda)"
    )


def test_what_is_not_known_is_not_shown() -> None:
    bare = msgspec.structs.replace(
        RUN,
        samples=None,
        epochs=None,
        step_samples=[(None, 1000)],
        samples_per_second=None,
        losses=[],
        metrics={},
        peak_bytes=None,
        startup_seconds=None,
        device=None,
        notes=["look here"],
    )
    shown = text.run_result(bare)
    assert "None" not in shown
    assert "speed" not in shown
    assert shown.endswith("note: look here")


def test_trouble_is_shown() -> None:
    shown = text.run_result(msgspec.structs.replace(RUN, nonfinite_losses=[41, 42], skipped_steps=3))
    assert "not finite from step 42 on (2 steps)" in shown
    assert "3 skipped by loss scaling" in shown


def test_a_list_of_runs_fits_a_terminal() -> None:
    line = text.run_line(
        Summary(
            target="/home/someone/project/train_a_model_with_a_long_name.py",
            state="interrupted",
            started_at="2026-01-02T03:04:05Z",
            seconds=1.0,
            steps=123456,
            device="cuda:0",
            samples_per_second=123456.0,
        )
    )
    assert "train_a_model" in line
    assert len(line) <= 100
