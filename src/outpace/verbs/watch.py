"""The verb for a notebook, or a program of one's own: measure the training that happens inside a ``with``."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone

from outpace import attaching, measured, protocol, watcher
from outpace.collect import Collector, blank
from outpace.errors import OutpaceError
from outpace.records import Measurement
from outpace.verbs.measure import against_limits
from outpace.verbs.metering import Metering

_watch: watcher.Watch | None = None
"""Of this process; the observers are attached once and stay."""


class Watching:
    """What ``with outpace.watch()`` gives."""

    def __init__(self) -> None:
        self._measurement: Measurement | None = None

    @property
    def measurement(self) -> Measurement:
        """What was measured, after the ``with``.

        Raises:
            OutpaceError: it is not over.
        """
        if self._measurement is None:
            raise OutpaceError("nothing is measured before the with block ends")
        return self._measurement


@contextlib.contextmanager
def watch(*, trace: bool = True) -> Iterator[Watching]:
    """Measure the training that happens inside the ``with``, in this process::

        with outpace.watch() as watch:
            train(model, loader)
        print(watch.measurement.samples_per_second)

    Training is not stopped. Jitted JAX functions are traced if they were made after the first use of this.

    Args:
        trace: record the operators of a step, which the limit is computed from.

    Raises:
        OutpaceError: it is used within itself, or in a script that outpace runs; or no training step, or too
            few, were seen.
    """
    global _watch
    if watcher.current is not None:
        raise OutpaceError("this training is being watched already", "one outpace.watch() at a time")
    found = Watching()
    began = datetime.now(timezone.utc)
    script = sys.argv[0] if sys.argv and sys.argv[0] else "notebook"
    run = blank(
        target=os.path.basename(script) or "notebook",  # noqa: PTH119 - it need not be a path
        script=script,
        args=[],
        started_at=began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )
    collector = Collector(run)
    collector.spawned_at = time.time()
    job = protocol.Job(
        script=script,
        events_fd=-1,
        spawned_at=collector.spawned_at,
        plan=protocol.Plan(seconds=math.inf, trace=trace),
    )
    with Metering() as metering:

        def take(event: protocol.Event) -> None:
            collector.take(event)  # type: ignore[arg-type]
            metering.take(event)  # type: ignore[arg-type]

        if _watch is None:
            _watch = watcher.Watch(take, job)
            attaching.attach_when_imported(_watch)
        else:
            _watch.close()  # what went on outside
            _watch.start(take, job)
        watcher.current = _watch
        try:
            yield found
            _watch.close()
            peak = _watch.peak() or attaching.process_peak()
            versions = attaching.versions(_watch)
            skipped = _watch.skipped_steps
        finally:
            watcher.current = None
            _watch.start(_nobody, protocol.Job(script=script, events_fd=-1, spawned_at=time.time()))
        if not collector.ends:
            raise OutpaceError(
                "no training step was seen inside outpace.watch()",
                "of a plain JAX or NumPy loop, tell each step with outpace.step(samples=…, loss=…)",
            )
        span = measured.span_of(collector)
        metered = metering.between(collector, span, measured.samples_in(collector, span))
    record = collector.record(
        state="done",
        seconds=time.time() - collector.spawned_at,
        skipped_steps=skipped,
        versions=versions,
        peak_bytes=peak[0] if peak else None,
        peak_bytes_source=peak[1] if peak else None,
    )
    found._measurement = against_limits(record, collector, metering.device, metered)


def _nobody(_event: protocol.Event) -> None:
    """Between two uses nobody listens."""
