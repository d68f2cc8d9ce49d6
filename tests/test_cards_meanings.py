"""What a ratio between two cards means is said in one line each, also for a dtype that one of them lacks."""

from __future__ import annotations

import pytest

from outpace.cards import load
from outpace.cards.meanings import Meaning, meanings
from outpace.records import Card


def by_topic(first: str, other: str) -> dict[str, Meaning]:
    found = meanings(load()[first], load()[other])
    topics = {meaning.topic: meaning for meaning in found}
    assert len(topics) == len(found)
    return topics


def test_v100_to_a100() -> None:
    topics = by_topic("v100-sxm2-16gb", "a100-sxm-40gb")
    assert list(topics) == ["bandwidth", "memory", "bf16", "fp16", "tf32", "fp64", "energy"]
    assert topics["bandwidth"].ratio == pytest.approx(1555 / 900)
    assert topics["bandwidth"].text.endswith("at most 1.73x, 1,555 against 900 GB/s")
    assert topics["memory"].text == "memory: 40 GiB instead of 16 GiB, a larger model or batch fits"
    assert topics["fp16"].ratio == pytest.approx(312 / 125)
    assert topics["energy"].ratio == pytest.approx(312 / 400 / (125 / 300))
    assert "400 W instead of 300 W" in topics["energy"].text


def test_a_dtype_that_one_card_lacks_says_what_happens_instead() -> None:
    topics = by_topic("v100-sxm2-16gb", "a100-sxm-40gb")
    assert topics["bf16"].ratio == pytest.approx(312 / 125)
    assert (
        "v100-sxm2-16gb has no bf16 matrix units and trains in fp16 with loss scaling" in topics["bf16"].text
    )
    assert topics["tf32"].ratio == pytest.approx(156 / 15.7)
    assert "v100-sxm2-16gb has no tf32 matrix units and runs fp32 on its vector units" in topics["tf32"].text
    p40 = by_topic("t4", "p40")
    assert p40["fp16"].ratio == pytest.approx(11.76 / 65, rel=1e-3)
    assert "p40 has no fp16 matrix units and runs fp32 on its vector units" in p40["fp16"].text
    assert "tf32" not in p40, "neither card has it"
    cdna2 = by_topic("mi210", "a100-sxm-40gb")
    assert "mi210 has no tf32 matrix units and trains in fp32" in cdna2["tf32"].text


def test_the_way_back_is_the_inverse() -> None:
    there = by_topic("v100-sxm2-16gb", "h100-sxm-80gb")
    back = by_topic("h100-sxm-80gb", "v100-sxm2-16gb")
    assert there.keys() == back.keys()
    for topic, meaning in there.items():
        assert meaning.ratio is not None
        assert back[topic].ratio == pytest.approx(1 / meaning.ratio)
    assert "what fills the first card does not fit" in back["memory"].text


def test_a_card_with_itself_is_no_different() -> None:
    assert all(meaning.ratio == 1 for meaning in meanings(load()["l4"], load()["l4"]))


def test_a_fact_that_is_not_published_is_not_made_up() -> None:
    bare = Card(name="bare", title="Bare", vendor="none", architecture="none", year=2020)
    assert meanings(bare, bare) == []
    found = {meaning.topic: meaning for meaning in meanings(load()["l4"], bare)}
    assert "bandwidth" not in found
    assert "energy" not in found
    assert found["bf16"].ratio is None
    assert found["bf16"].text == "bf16 matrix-bound work: bare has no figure for it"
    hungry = Card(
        name="hungry", title="Hungry", vendor="none", architecture="none", year=2020, board_power_watts=144
    )
    energy = meanings(load()["l4"], hungry)[-1]
    assert (energy.ratio, energy.text) == (None, "energy: 144 W instead of 72 W at full load")


def test_every_pair_of_cards_has_something_to_say() -> None:
    cards = list(load().values())
    for first in cards[::7]:
        for other in cards[::3]:
            for meaning in meanings(first, other):
                assert meaning.card == other.name
                assert "\n" not in meaning.text
                assert "None" not in meaning.text
                assert meaning.ratio is None or meaning.ratio > 0
