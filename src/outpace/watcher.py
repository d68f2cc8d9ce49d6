"""The worker's notebook of a training: observers write into it, it tells the parent.

Nothing here waits for a device. A loss is kept as the object it came as and turned into a number when it is
ready; events leave in batches, a few times a second.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from outpace import protocol, readings
from outpace.course import Course, Stop, Tracer
from outpace.race import Race, Switches
from outpace.stretch import Stretch

FLUSH_SECONDS = 0.2

#: So often a script may swallow that it is stopped.
MOST_STOPS = 3

#: Who may say what a training step is; a later one in this list is believed over an earlier one.
WITNESSES = ("torch", "keras", "script")

current: Watch | None = None
"""The watch of this process, if it is a worker."""


class Watch:
    """Receives what observers see. Only the process and the thread that train may call it.

    Args:
        send: takes one event; called a few times a second.
        job: what this worker runs.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        send: Callable[[protocol.Event], None],
        job: protocol.Job,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self.tracers: list[Tracer] = []
        """One per framework; used when a step is to be traced."""
        self.synchronizers: list[Callable[[Any], None]] = []
        """Wait until the devices are through; given the loss of the latest step, if there is one."""
        self.peaks: list[Callable[[], tuple[int, str] | None]] = []
        """Asked at the end for the peak of the memory allocator: (bytes, source)."""
        self.at_begin: list[Callable[[], object]] = []
        """Called when training starts."""
        self.before_end: list[Callable[[], None]] = []
        """Called when the script is over: a step that is not closed yet."""
        self.versions: dict[str, str] = {}
        self.stage: Switches | None = None
        """Switches speed-ups on and off, where the framework's observer can."""
        self.start(send, job)

    def start(self, send: Callable[[protocol.Event], None], job: protocol.Job) -> None:
        """Watch a new training; the observers stay attached."""
        self.job = job
        self._send = send
        self._zero = self._clock() - (time.time() - job.spawned_at)
        self._pid = os.getpid()
        self._witness: str | None = None
        self._began = False
        self._interrupted = False
        self._ends: list[float] = []
        self._samples: list[int | None] = []
        self._interruptions: list[int] = []
        self._losses: deque[tuple[int, Any]] = deque()
        self._flushed_at = 0.0
        self._notes: set[str] = set()
        self.course = self._course()
        self.fetching = 0.0
        """Seconds that the training has waited for data."""
        self.on_cpu = False
        self.stopping = False
        """A measurement has all it needs: the script is to be left."""
        self._stops = 0
        self.steps = 0
        self.last_end: float | None = None
        """When the latest step ended, or training began."""
        self.latest_samples: int | None = None
        self.latest_loss: Any = None
        self.skipped_steps = 0
        self.seen: set[str] = set()
        for name, version in self.versions.items():
            self.emit(protocol.Framework(name=name, version=version))

    def _course(self) -> Course | Race | Stretch | None:
        if self.job.plan is not None:
            return Course(self.job.plan, self)
        if self.job.race is not None:
            return Race(self.job.race, self)
        return Stretch(self.job.stretch, self) if self.job.stretch is not None else None

    def now(self) -> float:
        """Seconds since the spawn."""
        return self._clock() - self._zero

    def framework(self, name: str, version: str) -> None:
        """*name* is imported and observed."""
        self.versions[name] = str(version)
        self.emit(protocol.Framework(name=name, version=str(version)))

    def place(self, device: str, name: str | None = None, driver: str | None = None, **facts: Any) -> None:
        """The training really runs on *device*; *facts* are further fields of `protocol.Place`."""
        self.on_cpu = device == "cpu"
        self.emit(protocol.Place(device=device, name=name, driver=driver, **facts))

    def begin(self) -> None:
        """Training starts (idempotent): what came before is start-up."""
        if not self._began:
            self._began = True
            self.last_end = self.now()
            self.emit(protocol.Began(at=self.now()))
            for tell in self.at_begin:
                tell()
            if self.course is not None:
                self.course.begin()

    def claim(self, witness: str) -> bool:
        """Whether *witness* may report steps; a stronger one makes the weaker one's steps void."""
        if self._witness == witness:
            return True
        if self._witness is not None and WITNESSES.index(witness) < WITNESSES.index(self._witness):
            return False
        if self.steps:
            self.restart()
        self._witness = witness
        return True

    @property
    def witness(self) -> str | None:
        """Who is believed about steps so far."""
        return self._witness

    def interrupt(self) -> None:
        """Something other than training happens between two steps (an evaluation)."""
        self._interrupted = True
        self.pause()

    def pause(self) -> None:
        """What happens now may not be training; the next step tells. A window of a measurement ends here."""
        if self.course is not None and os.getpid() == self._pid:
            self.course.pause()

    def synchronize(self) -> None:
        """Wait until the devices have done what they were given."""
        loss = self._losses[-1][1] if self._losses else None
        for wait in self.synchronizers:
            wait(loss)

    def fetched(self, seconds: float) -> None:
        """The training has waited for data."""
        self.fetching += seconds

    def leave_if_over(self) -> None:
        """To be called between two steps, by the thread that trains.

        Raises:
            Stop: enough was seen.
        """
        if not self.stopping:
            return
        self._stops += 1
        if self._stops > MOST_STOPS:  # the script goes on whatever it is told
            os._exit(0)
        raise Stop

    def step(
        self,
        *,
        witness: str,
        samples: int | None = None,
        loss: Any = None,
        at: float | None = None,
        interrupted: bool = False,
    ) -> None:
        """One training step ended, at *at* (default: now).

        Args:
            witness: who says so, one of `WITNESSES`.
            samples: samples it consumed, if known.
            loss: a number, or anything that ``float`` takes; if it has ``ready()`` or ``is_ready()``
                it is not touched before that says so.
            interrupted: the time since the previous step holds something other than training.
        """
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._witness != witness and not self.claim(witness):
                return
            end = self.now() if at is None else at
            if not self._began:
                self.begin()
            self.last_end = end
            interrupted |= self._interrupted
            self._interrupted = False
            if interrupted:
                self._interruptions.append(len(self._ends))
            self._ends.append(end)
            self._samples.append(samples)
            if loss is not None:
                self._losses.append((self.steps, loss))
            self.steps += 1
            self.latest_samples, self.latest_loss = samples, loss
            if self.course is not None:
                self.course.stepped(interrupted=interrupted)
            if end - self._flushed_at >= FLUSH_SECONDS:
                self.flush()

    def metrics(self, values: Mapping[str, Any]) -> None:
        """Metrics of the script, by name. What is not a finite number is sent as ``None``."""
        with self._lock:
            numbers = {name: readings.number(value) for name, value in values.items()}
            self.flush()
            self.emit(protocol.Metrics(at=self.now(), step=self.steps, values=numbers))

    def progress(
        self, *, epoch: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None
    ) -> None:
        """How far the training is; *epoch* counts from 1."""
        self.emit(protocol.Progress(epoch=epoch, epochs=epochs, steps_per_epoch=steps_per_epoch))

    def note(self, text: str) -> None:
        """Tell the user *text*, once."""
        if text not in self._notes:
            self._notes.add(text)
            self.emit(protocol.Note(text=text))

    def flush(self, *, wait: bool = False) -> None:
        """Send what has gathered; with *wait*, also losses that are still on their way."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._ends:
                self.emit(
                    protocol.Steps(ends=self._ends, samples=self._samples, interrupted=self._interruptions)
                )
                self._ends, self._samples, self._interruptions = [], [], []
            steps: list[int] = []
            values: list[float | None] = []
            while self._losses and (wait or readings.ready(self._losses[0][1])):
                step, loss = self._losses.popleft()
                steps.append(step)
                values.append(readings.number(loss))
            if steps:
                self.emit(protocol.Losses(steps=steps, values=values))
            self._flushed_at = self.now()

    def close(self) -> None:
        """The script is over: close open steps and send the rest."""
        for finish in self.before_end:
            finish()
        if self.course is not None:
            self.course.finish()
        self.flush(wait=True)

    def loss_is_finite(self) -> bool:
        """Whether the latest step's loss is a number; waits for it. A step without a loss passes."""
        return self.latest_loss is None or readings.number(self.latest_loss) is not None

    def peak(self) -> tuple[int, str] | None:
        """The largest peak that the frameworks' allocators report: (bytes, source)."""
        found = [peak for ask in self.peaks if (peak := ask()) is not None]
        return max(found, default=None)

    def restart(self) -> None:
        """Forget the steps so far: they were not the training's."""
        self._ends, self._samples, self._interruptions = [], [], []
        self._losses.clear()
        self.steps = 0
        self.emit(protocol.Restart())

    def emit(self, event: protocol.Event) -> None:
        """Send *event* to the parent; in a forked child of the worker, nothing happens."""
        if os.getpid() == self._pid:
            self._send(event)
