"""The energy of a run, from the meter of the device that trains."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

import msgspec

from outpace import cards, meters, protocol
from outpace.collect import Collector
from outpace.measured import Span
from outpace.meters import Gauge
from outpace.records import Device, Measurement
from outpace.sampling import Sampler, energy_between, summary
from outpace.verbs.devices import known

#: After the script has ended the device is watched for so long, to see what it draws when idle.
IDLE_SECONDS = 2.0
SETTLING_SECONDS = 1.0


def device_of(place: protocol.Place, framework: str) -> Device:
    """Where a training runs, with its card and its energy source."""
    return known(
        Device(
            framework=framework,
            id=place.device,
            name=place.name or place.device,
            driver=place.driver,
            uuid=place.uuid,
            pci_address=place.pci_address,
            memory_total_bytes=place.memory_total_bytes,
            units=place.units,
        )
    )


class Metering:
    """Opens the meter when the worker says where it trains, and reads it until the end. A context."""

    def __init__(self) -> None:
        self.device: Device | None = None
        self._gauge: Gauge | None = None
        self._sampler: Sampler | None = None
        self._missing = "the device that trains could not be seen"
        self._ended_at: float | None = None

    def __enter__(self) -> Metering:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sampler is not None:
            self._sampler.stop()
        if self._gauge is not None:
            self._gauge.close()

    def take(self, event: protocol.AnyEvent) -> None:
        """An event of the worker."""
        if not isinstance(event, protocol.Place) or self.device is not None:
            return
        self.device = device_of(event, "")
        self._gauge, missing = meters.open_for(self.device)
        if self._gauge is None:
            self._missing = missing or self._missing
        else:
            self._sampler = Sampler(self._gauge, clock=time.time).start()

    def idle(self) -> None:
        """The training is over: see what the device draws without it."""
        if self._sampler is None or self.device is None or self.device.id == "cpu":
            return
        self._ended_at = time.time()
        time.sleep(IDLE_SECONDS)

    def between(self, collector: Collector, span: Span, samples: int | None) -> dict[str, Any]:
        """The energy fields of a measurement.

        Args:
            span: what was measured.
            samples: that were trained on in the span.
        """
        if self._sampler is None or self._gauge is None:
            return {"energy_missing_because": self._missing}
        self._sampler.stop()
        taken = self._sampler.samples
        start, end = collector.spawned_at + span.start, collector.spawned_at + span.end
        joules = energy_between(taken, start, end)
        seen = summary(taken, start, end)
        if joules is None or joules <= 0 or seen is None:
            reason = self._sampler.failed_because or "the meter gave no reading over the measured time"
            return {"energy_missing_because": reason}
        last = (self._ended_at or 0.0) + SETTLING_SECONDS
        idle = (
            summary(taken, last, taken[-1].seconds) if self._ended_at and taken[-1].seconds > last else None
        )
        per_sample = joules / samples if samples else None
        return {
            "joules_per_sample": per_sample,
            "energy_missing_because": None if samples else "how many samples a step has is not known",
            "mean_watts": seen.watts_mean,
            "idle_watts": idle.watts_mean if idle else None,
            "energy_source": self._gauge.source,
            "energy_scope": self._gauge.scope,
            "energy_caveat": self._gauge.caveat,
            "clock_hertz": seen.clock_hertz_mean,
            "clock_limit_hertz": seen.clock_limit_hertz,
            "throttled": {reason: round(share, 3) for reason, share in seen.throttled_shares.items()},
            "celsius_max": seen.celsius_max,
        }


#: Mean power of a training over the board's power: the median of 124 trainings on P100 and V100 at full power
#: limit, and the range of nine tenths of them (public measurements of the Zeus project and others).
BUSY = (0.65, 0.15, 0.95)


def with_estimated_energy(found: Measurement) -> Measurement:
    """*found* with joules by a model, marked as such, where the board's power is known; else as it is."""
    watts = cards.load()[found.card].board_power_watts if found.card and not found.part else None
    if watts is None or not found.samples_per_second or found.mean_watts is not None:
        return found
    middle, low, high = BUSY
    return msgspec.structs.replace(
        found,
        joules_per_sample=middle * watts / found.samples_per_second,
        mean_watts=middle * watts,
        energy_source=f"model: {middle:.0%} of the board's {watts:g} W",
        energy_scope="card",
        energy_caveat=f"not measured; trainings take {low:.0%} to {high:.0%} of that power",
    )
