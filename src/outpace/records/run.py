"""One training, from spawn to end."""

from __future__ import annotations

import msgspec

from outpace.records.things import Host


class Run(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="run"):
    """One training, from spawn to end. See ``docs/records.md``."""

    version: int = 1
    outpace: str
    target: str
    script: str
    args: list[str]
    script_sha256: str | None = None
    state: str
    """``done``, ``failed``, ``interrupted`` or ``killed``."""
    error: str | None = None
    hint: str | None = None
    """What to do about the error."""
    exit_code: int = 0
    started_at: str
    """UTC, ISO 8601."""
    seconds: float
    """From spawn to the end of the script."""
    startup_seconds: float | None = None
    """From spawn to the start of the first training step: imports, data, compilation before it."""
    device: str | None = None
    device_name: str | None = None
    device_driver: str | None = None
    device_asked: str = "auto"
    seed: int | None = None
    speedups_asked: list[str] = []
    speedups: dict[str, str] = {}
    """Those that took effect, and how that shows."""
    host: Host
    versions: dict[str, str] = {}
    steps: int = 0
    samples: int | None = None
    """All samples trained on; ``None`` where they could not be counted."""
    epochs: int | None = None
    step_seconds: list[float] = []
    """Per step: from the end of the previous one (the first: from the start of training) to its end."""
    step_samples: list[tuple[int | None, int]] = []
    """Run lengths: (samples per step, how many such steps in a row)."""
    interrupted_steps: list[int] = []
    """Steps whose ``step_seconds`` hold something other than training too (evaluation between epochs)."""
    losses: list[float | None] = []
    """Per step; ``None``: not known or not finite."""
    nonfinite_losses: list[int] = []
    """Steps whose loss was NaN or infinite."""
    skipped_steps: int = 0
    """Optimizer steps that loss scaling skipped."""
    metrics: dict[str, float | None] = {}
    """The last value of each."""
    metric_history: list[tuple[int, str, float | None]] = []
    """(steps done, name, value), in order."""
    peak_bytes: int | None = None
    peak_bytes_source: str | None = None
    samples_per_second: float | None = None
    """In steady state: without warm-up, interrupted steps and partial batches."""
    steady_steps: int = 0
    """How many steps ``samples_per_second`` rests on."""
    notes: list[str] = []
