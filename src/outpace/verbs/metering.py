"""The energy of a run, from the meter of the device that trains."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import msgspec

from outpace import cards, meters, protocol
from outpace.collect import Collector
from outpace.measured import Span
from outpace.records import Device, Measurement


class Metering:
    """Opens the meter when the worker says where it trains. A context."""

    def __enter__(self) -> Metering:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def take(self, event: protocol.AnyEvent) -> None:
        """An event of the worker."""

    def between(self, collector: Collector, span: Span, device: Device | None) -> dict[str, Any]:
        """The energy fields of a measurement."""
        if device is None:
            return {"energy_missing_because": "the device that trains could not be seen"}
        source, missing = meters.source_of(device)
        return {"energy_source": source, "energy_missing_because": missing}


#: Mean power of a training over the board's power: the median of 124 trainings on P100 and V100 at full power
#: limit, and the range of nine tenths of them (public measurements of the Zeus project and others).
BUSY = (0.65, 0.15, 0.95)


def with_estimated_energy(found: Measurement) -> Measurement:
    """*found* with joules by a model, marked as such, where the board's power is known; else as it is."""
    watts = cards.load()[found.card].board_power_watts if found.card and not found.part else None
    if watts is None or not found.samples_per_second:
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
