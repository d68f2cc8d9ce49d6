"""Finds the card that a person means: ``A100 SXM 40GB``, ``rtx3090``, ``NVIDIA A100-SXM4-80GB``."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterator, Sequence

from outpace.cards.table import load
from outpace.errors import UsageError
from outpace.records import Card
from outpace.units import GIB, GIGA, si

_LISTED = 8
_VENDORS = ("nvidia", "amd", "intel", "apple")
_BRANDS = frozenset(
    (*_VENDORS, "geforce", "gtx", "rtx", "tesla", "instinct", "radeon", "arc", "data", "center", "gpu")
)
_VARIANT = re.compile(r"^((?P<size>\d+)gb|(?P<form>sxm)\d?|pcie|nvl|oam|dgx|hgx)$")
_WRITTEN_TOGETHER = (
    (re.compile(r"\b(rtx|gtx|titan|radeon|arc|gaudi)(?=[a-z]?\d)"), r"\1 "),
    (re.compile(r"(ti)(super)\b"), r"\1 \2"),
    (re.compile(r"\b(\d{3,4})(ti|super|xtx|xt|gre)\b"), r"\1 \2"),
    (re.compile(r"\b(\d+) (gb|gib|g)\b"), r"\1\2"),
)


def find(name: str) -> Card:
    """The card of this name, written as a person would, or as a driver reports it.

    Raises:
        UsageError: no card has that name (the closest ones are named), or several have (they are listed with
            what tells them apart).
    """
    squashed = _squash(name)
    if not squashed:
        raise UsageError(f"'{name}' is not the name of a card", "outpace cards lists the names")
    cards = _by_squashed().get(squashed) or _by_words(name)
    if len(cards) == 1:
        return cards[0]
    if cards:
        told = [f"{card.name} ({facts})" for card, facts in zip(cards, _differences(cards), strict=True)]
        listed = ", ".join(told[:_LISTED]) + (f" and {len(told) - _LISTED} more" if told[_LISTED:] else "")
        raise UsageError(f"'{name}' could be any of {len(cards)} cards", f"choose one: {listed}")
    close = did_you_mean(name)
    raise UsageError(
        f"no card is called '{name}'",
        f"did you mean {' or '.join(close)}?" if close else "outpace cards lists the names",
    )


def did_you_mean(name: str) -> list[str]:
    """Up to three names of cards that are close to *name*."""
    known: dict[str, list[str]] = {}
    for card in load():
        known.setdefault(_model(card), []).append(card)
    close = difflib.get_close_matches(_model(name), known, n=3, cutoff=0.6)
    return [card for model in close for card in known[model]][:3]


def _by_words(name: str) -> tuple[Card, ...]:
    """Cards that have every word of *name*; if any, those that add only brand, memory and form to it."""
    wanted = frozenset(_words(name)).difference(_VENDORS)
    having = {card.name: card for card, words in _card_words() if wanted and wanted <= words}
    plain = [card for card in having.values() if not any(map(_is_model_word, {*_words(card.name)} - wanted))]
    told = any(character.isdigit() for word in wanted for character in word)  # "titan" alone names a family
    return tuple(plain if plain and told else having.values())


@functools.cache
def _by_squashed() -> dict[str, tuple[Card, ...]]:
    """Every way that a card is written in the table, without vendor, case, spaces and punctuation."""
    written: dict[str, dict[str, Card]] = {}
    for card in load().values():
        for text in (card.name, card.title, *card.driver_names):
            written.setdefault(_squash(text), {})[card.name] = card
    # A card's own name wins over what a driver calls another one.
    named = {_squash(name): (card,) for name, card in load().items()}
    return {key: tuple(cards.values()) for key, cards in written.items()} | named


@functools.cache
def _card_words() -> tuple[tuple[Card, frozenset[str]], ...]:
    return tuple((card, frozenset(_all_words(card))) for card in load().values())


def _all_words(card: Card) -> Iterator[str]:
    for word in (*_words(card.name), *_words(card.title)):
        yield word
        if found := _VARIANT.match(word):
            yield found["size"] or found["form"] or word  # "80gb" is found by "80", "sxm4" by "sxm"


def _words(text: str) -> list[str]:
    plain = re.sub(r"[^a-z0-9]+", " ", text.casefold()).strip()
    for pattern, replacement in _WRITTEN_TOGETHER:
        plain = pattern.sub(replacement, plain)
    return [re.sub(r"^(\d+)(gib|g)$", r"\1gb", word) for word in plain.split()]


def _model(text: str) -> str:
    return " ".join(filter(_is_model_word, _words(text)))


def _is_model_word(word: str) -> bool:
    return word not in _BRANDS and not _VARIANT.match(word)


def _squash(text: str) -> str:
    plain = "".join(character for character in text.casefold() if character.isalnum())
    return next((plain.removeprefix(vendor) for vendor in _VENDORS if plain.startswith(vendor)), plain)


_TELLING: tuple[Callable[[Card], str | None], ...] = (
    lambda card: f"{card.memory_bytes / GIB:g} GiB" if card.memory_bytes else None,
    lambda card: _bandwidth(card.memory_bandwidth_bytes_per_second),
    lambda card: f"{card.units} units" if card.units else None,
    lambda card: _fp16(card.matrix_flops_per_second.get("fp16")),
    lambda card: f"{card.board_power_watts:g} W" if card.board_power_watts else None,
    lambda card: card.peer_link or card.host_link,
    lambda card: str(card.year),
)


def _differences(cards: Sequence[Card]) -> list[str]:
    """For each card the facts in which the cards differ."""
    facts = [fact for fact in _TELLING if len({fact(card) for card in cards}) > 1]
    return [", ".join(told for fact in facts if (told := fact(card))) or card.title for card in cards]


def _bandwidth(value: float | None) -> str | None:
    return f"{value / GIGA:,.0f} GB/s" if value else None


def _fp16(value: float | None) -> str | None:
    return f"{si(value, 'FLOP/s')} fp16" if value else None
