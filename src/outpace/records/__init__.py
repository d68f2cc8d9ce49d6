"""The nouns as frozen values, with JSON in and out.

Every record that is saved carries ``record`` (its kind) and ``version`` (of its fields), is written
atomically, and is read back with a check of both. Field names carry units; see ``docs/records.md``.
"""

from outpace.records.files import check_writable, read, to_json, write_atomically
from outpace.records.run import Run
from outpace.records.things import Card, Device, Host
from outpace.records.trace import Operator, StepMemory, Trace

__all__ = [
    "Card",
    "Device",
    "Host",
    "Operator",
    "Run",
    "StepMemory",
    "Trace",
    "check_writable",
    "read",
    "to_json",
    "write_atomically",
]
