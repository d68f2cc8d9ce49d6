"""Predictions as text."""

from __future__ import annotations

from outpace.report import prediction as report
from outpace.verbs.predict import predict
from tests.predictions import trace


def test_a_table_with_bars_and_sentences() -> None:
    found = predict(trace(), on=["a100-sxm-80gb", "8xh100-sxm-80gb", "m4"], price=["a100-sxm-80gb=2"])
    assert isinstance(found, list)
    text = report.table(found)
    assert "8xh100-sxm-80gb" in text
    assert "┼" in text
    assert "m4: no prediction" in text
    assert "basis:" in text
    assert all(len(line) <= 110 for line in text.splitlines())


def test_without_any_prediction() -> None:
    found = predict(trace(), on=["m4"])
    assert isinstance(found, list)
    assert report.table(found).startswith("m4: no prediction")
