"""Facts of several cards with their ratios, as data."""

from __future__ import annotations

import msgspec
import pytest

from outpace.cards import load
from outpace.cards.side_by_side import Fact, compare, describe
from outpace.records import Card


def facts(*names: str) -> dict[str, Fact]:
    return {fact.key: fact for fact in compare([load()[name] for name in names]).facts}


def test_each_fact_has_its_value_and_the_ratio_to_the_first_card() -> None:
    found = facts("v100-sxm2-16gb", "a100-sxm-40gb", "h100-sxm-80gb")
    bandwidth = found["memory_bandwidth_bytes_per_second"]
    assert bandwidth.values == (900e9, 1555e9, 3352e9)
    assert bandwidth.shown == ("900 GB/s", "1,555 GB/s", "3,352 GB/s")
    assert list(bandwidth.ratios) == pytest.approx([1, 1555 / 900, 3352 / 900])
    assert found["matrix_flops_per_second.fp16"].shown[1] == "312 TFLOP/s"
    assert found["vector_flops_per_second.fp32"].ratios[1] == pytest.approx(19.5 / 15.7)
    assert found["memory_bytes"].shown == ("16 GiB", "40 GiB", "80 GiB")


def test_missing_facts_have_no_ratio_and_text_neither() -> None:
    found = facts("v100-sxm2-16gb", "a100-sxm-40gb")
    tf32 = found["matrix_flops_per_second.tf32"]
    assert tf32.values == (None, 156e12)
    assert tf32.shown == ("-", "156 TFLOP/s")
    assert tf32.ratios == (None, None)
    assert found["architecture"].ratios == (None, None)
    assert found["year"].ratios == (None, None)
    assert "matrix_flops_per_second.fp4" not in found, "no card has it"


def test_int8_is_counted_in_operations() -> None:
    assert facts("a100-sxm-40gb")["matrix_flops_per_second.int8"].shown == ("624 TOP/s",)


def test_meanings_are_those_of_the_other_cards() -> None:
    found = compare([load()["t4"], load()["l4"], load()["a10"]])
    assert found.cards == ("t4", "l4", "a10")
    assert {meaning.card for meaning in found.meanings} == {"l4", "a10"}
    assert compare([load()["t4"]]).meanings == ()


def test_it_is_plain_data() -> None:
    decoded = msgspec.json.decode(msgspec.json.encode(compare([load()["t4"], load()["l4"]])))
    assert decoded["facts"][0]["shown"] == ["NVIDIA Tesla T4", "NVIDIA L4"]


@pytest.mark.parametrize("card", load().values(), ids=lambda card: card.name)
def test_every_card_can_be_described(card: Card) -> None:
    rows = describe(card)
    assert rows[0] == ("card", card.title)
    assert all(label and text and "None" not in text for label, text in rows)
    for document in card.sources.values():
        assert any(text == document for _, text in rows)


def test_description_says_what_was_halved_and_what_to_know() -> None:
    rows = dict(describe(load()["l4"]))
    assert rows["half of sparse"] == "tf32, fp16, bf16, fp8, int8"
    assert "two GPUs" in dict(describe(load()["k80"]))["note"]
