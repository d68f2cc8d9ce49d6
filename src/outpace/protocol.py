"""What the parent and the worker of a run say to each other: one job down, one JSON line per event up."""

from __future__ import annotations

import msgspec

from outpace.records import Operator, StepMemory, Trial

JOB_VARIABLE = "OUTPACE_JOB"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a training shall be seen before the script is stopped."""

    measure: bool = True
    """``False``: only trace a step."""
    steps: int | None = None
    """Steps to measure after warm-up."""
    seconds: float | None = None
    """How long to measure after warm-up. With neither: until the pace is known well."""
    trace: bool = True
    """Record the operators of a step, after the warm-up."""
    fake: bool = False
    """Compute shapes only, no values; for steps too heavy for this machine."""
    as_on_card: bool = False
    """Of shapes: run operators in the ways of an accelerator (fused attention, an RNN in one piece), not the
    CPU's."""


class Race(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates to be raced against each other in one training, in turns of some steps."""

    slots: dict[str, str]
    """The slot of each candidate, in the order in which they are applied."""
    pairs: list[list[str]] = []
    trials: list[Trial] = []
    """What is known already."""
    seconds: float
    """For all races of this worker."""
    window_seconds: float = 0.2
    """Of one turn, at least."""
    planned_steps: int | None = None


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """The script is stopped after so much training, if it is not over sooner."""

    steps: int | None = None
    seconds: float | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker shall run, handed over in the environment variable ``OUTPACE_JOB``."""

    script: str
    args: list[str] = []
    device: str = "auto"
    seed: int | None = None
    speedups: list[str] = []
    events_fd: int
    plan: Plan | None = None
    """Measure, or trace. With none of the three the script runs to its end."""
    race: Race | None = None
    stretch: Stretch | None = None
    seeds_shifted: bool = False
    """``seed`` is also added to the seeds that the script sets itself."""
    spawned_at: float
    """Seconds since the epoch; the zero of every time stamp of the run."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower, omit_defaults=True):
    """Anything the worker reports."""


class Framework(Event, frozen=True, kw_only=True):
    """A framework was imported and is now observed."""

    name: str
    version: str


class Began(Event, frozen=True, kw_only=True):
    """The first training step starts: everything before was start-up."""

    at: float


class Steps(Event, frozen=True, kw_only=True):
    """Training steps that ended."""

    ends: list[float]
    """Seconds since the spawn, one per step."""
    samples: list[int | None]
    interrupted: list[int] = []
    """Positions in ``ends`` of steps before which the script did something else (evaluation, saving)."""


class Losses(Event, frozen=True, kw_only=True):
    """Loss values; they may arrive later than their steps."""

    steps: list[int]
    values: list[float | None]
    """``None`` stands for a value that is not finite (JSON knows no NaN)."""


class Restart(Event, frozen=True, kw_only=True):
    """Forget the steps so far: a better witness of the training's steps has appeared."""


class Metrics(Event, frozen=True, kw_only=True):
    at: float
    step: int
    values: dict[str, float | None]


class Progress(Event, frozen=True, kw_only=True):
    """How far the training is, as far as the script tells. ``epoch`` counts from 1."""

    epoch: int | None = None
    epochs: int | None = None
    steps_per_epoch: int | None = None


class Place(Event, frozen=True, kw_only=True):
    """The device that the training really runs on."""

    device: str
    name: str | None = None
    driver: str | None = None
    uuid: str | None = None
    pci_address: str | None = None
    memory_total_bytes: int | None = None
    units: int | None = None
    synchronous: bool = False
    """The device has computed a step when the host is through with it: no need to wait."""


class Edge(Event, frozen=True, kw_only=True):
    """The device has been waited for: the beginning or end of a window of steps."""

    at: float
    """Seconds since the spawn, after waiting."""
    waited: float
    """How long the device took to catch up."""
    fetching: float
    """Seconds that the training has waited for data so far."""
    opens: bool = False
    """What lies between the edge before and this one was not training."""


class Phase(Event, frozen=True, kw_only=True):
    """The course of a measurement: ``tracing``, ``warming`` again, ``measuring``, ``over``."""

    at: float
    name: str
    settled: bool = True
    """The pace was steady when measuring began."""


class Traced(Event, frozen=True, kw_only=True):
    """The operators of one training step."""

    framework: str
    device: str
    operators: list[Operator]
    samples: int | None = None
    memory: StepMemory | None = None
    settings: dict[str, str] = {}
    """What decides which units compute: ``matmul_fp32``, ``convolution_fp32`` (``tf32`` or ``fp32``)."""
    notes: list[str] = []


class Applied(Event, frozen=True, kw_only=True):
    """A speed-up has taken effect."""

    name: str
    detail: str
    """How that shows."""


class Turn(Event, frozen=True, kw_only=True):
    """From here on, these speed-ups are on."""

    at: float
    on: list[str]
    trying: list[str] = []
    """The change among them; none: this is what the others are raced against."""
    racing: int = 0
    """Changes in this race."""


class Tried(Event, frozen=True, kw_only=True):
    """A change has been raced to the end."""

    trial: Trial


class Note(Event, frozen=True, kw_only=True):
    """One sentence that the user should read."""

    text: str


class Ended(Event, frozen=True, kw_only=True):
    """The script is over. ``state`` is ``done``, ``stopped`` (as planned), ``failed`` or ``interrupted``."""

    at: float
    state: str
    error: str | None = None
    hint: str | None = None
    exit_code: int = 0
    peak_bytes: int | None = None
    peak_bytes_source: str | None = None
    skipped_steps: int = 0
    versions: dict[str, str] = {}
    seen: list[str] = []
    """What was seen of a training when no step was: ``forward``, ``backward`` …"""


AnyEvent = (
    Framework
    | Began
    | Steps
    | Losses
    | Restart
    | Metrics
    | Progress
    | Place
    | Edge
    | Phase
    | Traced
    | Applied
    | Turn
    | Tried
    | Note
    | Ended
)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(AnyEvent).decode
