"""What the parent and the worker of a run say to each other: one job down, one JSON line per event up."""

from __future__ import annotations

import msgspec

from outpace.records import Operator, StepMemory

JOB_VARIABLE = "OUTPACE_JOB"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker shall run, handed over in the environment variable ``OUTPACE_JOB``."""

    script: str
    args: list[str] = []
    device: str = "auto"
    seed: int | None = None
    events_fd: int
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


class Traced(Event, frozen=True, kw_only=True):
    """The operators of one training step."""

    framework: str
    device: str
    operators: list[Operator]
    samples: int | None = None
    memory: StepMemory | None = None
    notes: list[str] = []


class Note(Event, frozen=True, kw_only=True):
    """One sentence that the user should read."""

    text: str


class Ended(Event, frozen=True, kw_only=True):
    """The script is over. ``state`` is ``done``, ``failed`` or ``interrupted``."""

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


AnyEvent = Framework | Began | Steps | Losses | Restart | Metrics | Progress | Place | Traced | Note | Ended

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(AnyEvent).decode
