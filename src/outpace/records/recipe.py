"""What was tried to make a training faster, and what came of it."""

from __future__ import annotations

import msgspec

from outpace.records.measurement import Span

#: How the trial of a change ended.
VERDICTS = (
    "kept",
    "beaten",  # faster, but another one for the same slot more so
    "no gain",
    "slower",
    "does not pay off",  # faster, but its start-up costs more than the planned run saves
    "not applicable",
    "not finite",
    "crashed",
    "hung",
    "out of memory",
    "not the same",  # the proof failed
    "dropped",  # kept at first, and not needed beside what was kept later
)


class Trial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change that was tried, against what was best so far."""

    names: list[str]
    """The speed-ups that were added, or (``drop``) taken away."""
    base: list[str] = []
    """Those that were on without the change."""
    drop: bool = False
    verdict: str
    """One of `VERDICTS`."""
    gain: Span | None = None
    """How many times as fast as without the change, with its 95 % interval."""
    startup_seconds: float | None = None
    """What it adds before the pace is steady, such as compilation."""
    reason: str | None = None
    """Why it is not applicable, or how it failed."""


class Score(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure of the trainings without and with a recipe, over the seeds."""

    name: str
    """A metric of the script, or ``final loss`` / ``mean loss`` of the training."""
    better: str
    """``higher``, ``lower`` or ``unknown``."""
    baseline: list[float | None]
    recipe: list[float | None]
    """By seed, in the same order; ``None``: not finite."""
    margin: float = 0.0
    """A worsening up to here counts as the same."""
    worse_by: float | None = None
    """The mean worsening; negative: it got better. Of unknown direction, the change without its sign."""
    bound: float | None = None
    """The worsening is less, at 95 % confidence."""
    held: bool


class Proof(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a training with the recipe is as good as without."""

    seeds: list[int]
    steps: int
    """Of each training; the shortest."""
    whole: bool
    """The script ran to its end."""
    scores: list[Score]
    held: bool
    gain: Span | None = None
    """How many times as fast, by the steady pace of the same trainings."""
    energy_ratio: float | None = None
    """Joules per sample with the recipe, over those without."""
    energy_source: str | None = None
    notes: list[str] = []


class Recipe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="record", tag="recipe"):
    """Speed-ups for one training on one device, with the evidence. See ``docs/records.md``."""

    version: int = 1
    outpace: str
    target: str
    script_sha256: str | None = None
    args: list[str] = []
    device: str
    device_name: str | None = None
    versions: dict[str, str] = {}
    made_at: str
    speedups: list[str]
    samples_per_second: float | None = None
    """Of the script as it is."""
    trials: list[Trial] = []
    proof: Proof | None = None
    notes: list[str] = []
