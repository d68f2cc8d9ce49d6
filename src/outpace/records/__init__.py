"""The nouns as frozen values, with JSON in and out.

Every record that is saved carries ``record`` (its kind) and ``version`` (of its fields), is written
atomically, and is read back with a check of both. Field names carry units; see ``docs/records.md``.
"""

from outpace.records.ceilings import Ceilings
from outpace.records.files import check_writable, read, to_json, write_atomically
from outpace.records.measurement import (
    Comparison,
    Environment,
    Finding,
    Measurement,
    Method,
    OperatorShare,
    Span,
    StepSeconds,
)
from outpace.records.prediction import Interval, MostBatch, Prediction
from outpace.records.recipe import VERDICTS, Proof, Recipe, Score, Trial
from outpace.records.run import Run
from outpace.records.things import Card, Device, Host
from outpace.records.trace import Operator, StepMemory, Trace

__all__ = [
    "VERDICTS",
    "Card",
    "Ceilings",
    "Comparison",
    "Device",
    "Environment",
    "Finding",
    "Host",
    "Interval",
    "Measurement",
    "Method",
    "MostBatch",
    "Operator",
    "OperatorShare",
    "Prediction",
    "Proof",
    "Recipe",
    "Run",
    "Score",
    "Span",
    "StepMemory",
    "StepSeconds",
    "Trace",
    "Trial",
    "check_writable",
    "read",
    "to_json",
    "write_atomically",
]
