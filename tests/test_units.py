"""Quantities as text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (1.234e-8, "12.3 ns"),
        (4.5e-5, "45.0 µs"),
        (0.01234, "12.3 ms"),
        (0.99999, "1.00 s"),
        (1.25, "1.25 s"),
        (9.8, "9.80 s"),
        (9.999, "10.0 s"),
        (59.9, "59.9 s"),
        (125, "2 min 05 s"),
        (3599.9, "1 h 00 min"),
        (3720, "1 h 02 min"),
        (90000, "25 h 00 min"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12 B"), (2048, "2.00 KiB"), (432 * 2**20, "432 MiB"), (int(79.6 * 2**30), "79.6 GiB"), (0, "0 B")],
)
def test_byte_count(value: float, text: str) -> None:
    assert units.byte_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(312e12, "312 TFLOP/s"), (1.557e12, "1.56 TFLOP/s"), (999, "999 FLOP/s"), (0.5, "0.500 FLOP/s")],
)
def test_si(value: float, text: str) -> None:
    assert units.si(value, "FLOP/s") == text


@given(st.floats(1e-12, 1e12))
def test_significant_digits_round_trip(value: float) -> None:
    text = units.significant(value)
    assert re.fullmatch(r"[\d,]+(\.\d+)?(e-\d+)?", text)
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.0051)


@given(st.floats(1e-9, 1e7))
def test_every_duration_has_a_number_and_a_unit(value: float) -> None:
    assert re.fullmatch(r"[\d.,]+ (ns|µs|ms|s)|\d+ min \d\d s|\d+ h \d\d min", units.seconds(value))
