"""Events of a worker in, one `Run` record out."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from outpace import __version__, host, protocol, stats
from outpace.records import Run


class Collector:
    """Gathers the events of one run; at any moment it knows how far the training is.

    Args:
        run: what is known before the worker starts (target, script, arguments, host, time).
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.spawned_at = 0.0
        """Seconds since the epoch, once the run is over: the zero of all time stamps."""
        self.began_at: float | None = None
        self.ends: list[float] = []
        self.samples: list[int | None] = []
        self.interrupted: list[int] = []
        self.losses: dict[int, float | None] = {}
        self.metrics: list[tuple[int, str, float | None]] = []
        self.frameworks: dict[str, str] = {}
        self.place: protocol.Place | None = None
        self.epoch: int | None = None
        self.epochs: int | None = None
        self.steps_per_epoch: int | None = None
        self.epoch_began_at_step = 0
        self.notes: list[str] = []
        self.speedups: dict[str, str] = {}
        """Those that took effect, and how that shows."""
        self.ended: protocol.Ended | None = None
        self.edges: list[protocol.Edge] = []
        self.phases: list[protocol.Phase] = []
        self.traced: protocol.Traced | None = None

    def take(self, event: protocol.AnyEvent) -> None:  # noqa: PLR0912 - one case per kind
        """One more event."""
        match event:
            case protocol.Steps():
                self.interrupted += [len(self.ends) + index for index in event.interrupted]
                self.ends += event.ends
                self.samples += event.samples
            case protocol.Losses():
                self.losses.update(zip(event.steps, event.values, strict=True))
            case protocol.Restart():
                self.ends, self.samples, self.interrupted, self.losses = [], [], [], {}
            case protocol.Began():
                self.began_at = event.at
            case protocol.Metrics():
                self.metrics += [(event.step, name, value) for name, value in event.values.items()]
            case protocol.Progress():
                if event.epoch is not None and event.epoch != self.epoch:
                    self.epoch, self.epoch_began_at_step = event.epoch, len(self.ends)
                self.epochs = event.epochs or self.epochs
                self.steps_per_epoch = event.steps_per_epoch or self.steps_per_epoch
            case protocol.Framework():
                self.frameworks[event.name] = event.version
            case protocol.Place():
                self.place = event
            case protocol.Edge():
                self.edges.append(event)
            case protocol.Phase():
                self.phases.append(event)
            case protocol.Traced():
                self.traced = event
            case protocol.Applied():
                self.speedups[event.name] = event.detail
            case protocol.Note():
                self.notes.append(event.text)
            case protocol.Ended():
                self.ended = event

    @property
    def last_loss(self) -> float | None:
        """The newest finite loss."""
        return self.losses[max(self.losses)] if self.losses else None

    def step_seconds(self) -> list[float]:
        """Seconds per step."""
        if not self.ends:
            return []
        first = self.began_at if self.began_at is not None else self.ends[0]
        return [
            round(end - start, 7) for start, end in itertools.pairwise([min(first, self.ends[0]), *self.ends])
        ]

    def record(self, **end: Any) -> Run:
        """The run as a record.

        Args:
            end: fields that the parent knows better than the worker (``state``, ``error``, ``exit_code``,
                ``seconds``).
        """
        seconds = self.step_seconds()
        pace = stats.steady_pace(seconds, self.samples, self.interrupted)
        known = [samples for samples in self.samples if samples is not None]
        fields: dict[str, Any] = {
            "startup_seconds": self.began_at,
            "versions": dict(self.frameworks),
            "steps": len(self.ends),
            "samples": sum(known) if known and len(known) == len(self.samples) else None,
            "epochs": self.epoch,
            "step_seconds": seconds,
            "step_samples": [(size, len(list(group))) for size, group in itertools.groupby(self.samples)],
            "interrupted_steps": self.interrupted,
            "losses": self._losses(),
            "nonfinite_losses": sorted(step for step, value in self.losses.items() if value is None),
            "metrics": {name: value for _, name, value in self.metrics},
            "metric_history": self.metrics,
            "samples_per_second": pace.samples_per_second if pace else None,
            "steady_steps": pace.steps if pace else 0,
            "notes": self._notes(),
            "speedups": self.speedups,
        }
        if self.place is not None:
            fields |= {
                "device": self.place.device,
                "device_name": self.place.name,
                "device_driver": self.place.driver,
            }
        if self.ended is not None:
            fields |= {
                "state": self.ended.state,
                "error": self.ended.error,
                "hint": self.ended.hint,
                "exit_code": self.ended.exit_code,
                "seconds": self.ended.at,
                "skipped_steps": self.ended.skipped_steps,
                "versions": self.ended.versions,
                "peak_bytes": self.ended.peak_bytes,
                "peak_bytes_source": self.ended.peak_bytes_source,
            }
        return msgspec.structs.replace(self._run, **(fields | end))

    def _notes(self) -> list[str]:
        """What the worker said, and which speed-ups it never heard of."""
        told = " ".join(self.notes)
        silent = [
            f"{name} is not applied: it works in PyTorch scripts only"
            for name in self._run.speedups_asked
            if self.ends and name not in self.speedups and f"{name} is not applied" not in told
        ]
        return self.notes + silent

    def _losses(self) -> list[float | None]:
        if not self.losses:
            return []
        return [self.losses.get(step) for step in range(len(self.ends))]


def blank(*, target: str, script: str, args: list[str], started_at: str, **known: Any) -> Run:
    """The record of a run that has not begun."""
    return Run(
        outpace=__version__,
        target=target,
        script=script,
        args=args,
        state="failed",
        started_at=started_at,
        seconds=0.0,
        host=host.here(),
        **known,
    )
