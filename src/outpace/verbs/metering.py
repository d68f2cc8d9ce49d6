"""The energy of a run, from the meter of the device that trains."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from outpace import meters, protocol
from outpace.collect import Collector
from outpace.measured import Span
from outpace.records import Device


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
