"""Losses and metrics as numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from outpace import readings


class Item:
    def item(self) -> float:
        return 2.5


class Late:
    def is_ready(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1.0), ("2.5", 2.5), (Item(), 2.5), (math.nan, None), (math.inf, None), (None, None), ([], None)],
)
def test_anything_is_a_number_or_none(value: Any, number: float | None) -> None:
    assert readings.number(value) == number


def test_what_cannot_be_asked_is_ready() -> None:
    assert readings.ready(1.0)
    assert not readings.ready(Late())
