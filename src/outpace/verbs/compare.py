"""The verb: how many times as fast one measured training is as another."""

from __future__ import annotations

from pathlib import Path

from outpace import comparison
from outpace.records import Comparison, Measurement, read


def compare(a: Path | str | Measurement, b: Path | str | Measurement) -> Comparison:
    """Compare two measurements that were taken apart.

    Args:
        a, b: records, or the files that hold them.

    Raises:
        OutpaceError: a file cannot be read, or holds something else.
    """
    one, two = _read(a), _read(b)
    return comparison.apart(one, two, names=(_name(a, one), _name(b, two)))


def _read(source: Path | str | Measurement) -> Measurement:
    return source if isinstance(source, Measurement) else read(Path(source), Measurement)


def _name(source: Path | str | Measurement, found: Measurement) -> str:
    what = " ".join([found.target, *found.args])
    where = found.device_name or found.device or "a device that was not seen"
    return f"{what} on {where}" + ("" if isinstance(source, Measurement) else f" ({source})")
