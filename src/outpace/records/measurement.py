"""What was measured of a training."""

from __future__ import annotations

import msgspec

from outpace.records.things import Host
from outpace.records.trace import StepMemory, Trace


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval."""

    median: float
    low: float
    high: float


class StepSeconds(Span, frozen=True, kw_only=True):
    """The time of a full training step: the median over windows, its interval, the range of the windows."""

    least: float
    most: float


class OperatorShare(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operator, against what the device could do. All figures are of all its calls in a step."""

    kind: str
    name: str
    phase: str
    dtype: str
    inputs: tuple[tuple[int, ...], ...] = ()
    count: int = 1
    flops: int = 0
    bytes: int = 0
    share_of_step: float | None = None
    """Of the time of the step, from one step that was timed operator by operator."""
    seconds: float | None = None
    """``share_of_step`` of the measured step."""
    limit_seconds: float
    """What it would need at the device's limit."""
    limited_by: str
    """``compute``, ``memory`` or ``nothing``."""
    sentence: str
    """What holds it back."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the user should know about the speed of this training."""

    what: str
    """``data``, ``launches``, ``compilation`` … see ``docs/records.md``."""
    sentence: str


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How a measurement came about."""

    version: int = 1
    warm_up_steps: int
    warm_up_seconds: float
    settled: bool
    """The pace was steady when measuring began."""
    windows: int
    steps: int
    seconds: float
    """From the first window to the end of the last one."""
    clock: str
    """``host``: the device is through with a step when the host is; ``waited``: at the edges of windows."""
    repeats: int = 1
    interval: str = "median over windows, 95 % moving block bootstrap"


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What the figures depend on besides the script."""

    host: Host
    versions: dict[str, str]
    variables: dict[str, str] = {}
    """Environment variables that change speed, where they are set."""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="measurement"):
    """The speed and cost of one training on one device. See ``docs/records.md``."""

    version: int = 1
    outpace: str
    target: str
    script: str
    args: list[str]
    script_sha256: str | None = None
    started_at: str
    device: str | None = None
    device_name: str | None = None
    device_driver: str | None = None
    card: str | None = None
    part: str | None = None
    """Of a card: a MIG slice, a virtual GPU."""
    speedups: dict[str, str] = {}
    """Those that took effect, and how that shows."""
    frameworks: dict[str, str] = {}
    environment: Environment
    method: Method

    samples_per_second: float | None = None
    samples_per_step: int | None = None
    step_seconds: StepSeconds
    startup_seconds: float | None = None
    """From spawn to the start of the first step: imports, data, building the model."""
    first_step_seconds: float | None = None
    data_seconds: float | None = None
    """Per step: waiting for the next batch. ``None``: the framework fetches where it cannot be seen."""
    waited_seconds: float | None = None
    """Per window: how far the device was behind the host."""
    bound_by: str | None = None
    """``data``, ``host`` (launches), ``device``; ``None``: not known."""
    launch_seconds: float | None = None
    """What one operator call costs the host, at least."""
    calls: int | None = None
    """Operator calls in a step."""

    limit_seconds: float | None = None
    share_of_limit: float | None = None
    limit_source: str | None = None
    limit_missing_because: str | None = None
    flops_per_sample: float | None = None
    flops_per_second: float | None = None
    operators: list[OperatorShare] = []
    """The greatest by time, or where no times are known by their limit."""

    peak_bytes: int | None = None
    peak_bytes_source: str | None = None
    memory: StepMemory | None = None

    joules_per_sample: float | None = None
    joules_per_epoch: float | None = None
    mean_watts: float | None = None
    idle_watts: float | None = None
    energy_source: str | None = None
    energy_scope: str | None = None
    energy_caveat: str | None = None
    energy_missing_because: str | None = None
    clock_hertz: float | None = None
    clock_limit_hertz: float | None = None
    celsius_max: float | None = None
    throttled: dict[str, float] = {}
    """Reason to share of the measured time."""

    loss_first: float | None = None
    loss_last: float | None = None
    nonfinite_losses: int = 0
    skipped_steps: int = 0

    findings: list[Finding] = []
    notes: list[str] = []
    window_seconds: list[float] = []
    """Mean step time of each window."""
    repeated: list[Span] = []
    """Step time of each fresh process, where there were several."""
    trace: Trace | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="comparison"):
    """Two trainings, A and B: how many times as fast as A is B?"""

    version: int = 1
    outpace: str
    a: str
    b: str
    """What they are: target, arguments, device."""
    ratio: Span
    """Samples per second of B over those of A; without samples, steps per second."""
    verdict: str
    """``faster``, ``slower`` or ``not different``: B, beyond the interval."""
    confidence: float = 0.95
    pairs: int
    """Measured in turns, each in a fresh process; 0: measured apart."""
    unit: str = "samples"
    energy_ratio: float | None = None
    """Joules per sample of B over those of A, both measured from the same kind of source."""
    memory_ratio: float | None = None
    differs: list[str] = []
    """What else is different between the two."""
    notes: list[str] = []
    measurements: list[Measurement] = []
