"""The verb: facts of accelerator cards, listed or side by side, with what an hour of each costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from outpace.cards import find, prices, select
from outpace.cards.meanings import Meaning
from outpace.cards.prices import Price
from outpace.cards.side_by_side import Fact, compare
from outpace.errors import UsageError
from outpace.records import Card
from outpace.units import GIB


class Listed(Card, frozen=True, kw_only=True, omit_defaults=True):
    """A card with its price, where one is known."""

    price: Price | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Cards side by side, each with its price; ratios are to the first."""

    cards: list[Listed]
    facts: tuple[Fact, ...]
    meanings: tuple[Meaning, ...]


def live(source: str) -> tuple[Price, ...] | None:
    """Offers of now for ``live``, nothing for ``table``.

    Raises:
        UsageError: neither of the two.
        OutpaceError: live prices cannot be had.
    """
    if source not in ("table", "live"):
        raise UsageError(f"unknown source of prices {source!r}", "table or live")
    return prices.live() if source == "live" else None


def cards(
    names: Sequence[str] = (),
    *,
    vendor: str | None = None,
    memory_gib: float | None = None,
    since: int | None = None,
    live: Iterable[Price] | None = None,
    own: Sequence[str] = (),
) -> list[Listed] | Comparison:
    """The cards called *names* side by side (one alone: its facts), or without names all that fit.

    Args:
        names: forgiving names; see `outpace.cards.find`.
        vendor: only cards of this vendor.
        memory_gib: only cards with so much memory or more.
        since: only cards launched in this year or later.
        live: prices to use instead of the table's.
        own: the user's prices, ``CARD=USD`` per hour.

    Raises:
        UsageError: a name is unknown or means several cards, a filter fits none, a price is malformed.
    """
    own_prices = dict(map(prices.own_price, own))
    offers = tuple(live) if live is not None else None

    def listed(card: Card) -> Listed:
        return Listed(**msgspec.structs.asdict(card), price=prices.price_of(card, own_prices, offers))

    if names:
        chosen = list({card.name: card for card in map(find, names)}.values())
        both = compare(chosen)
        return Comparison(cards=list(map(listed, chosen)), facts=both.facts, meanings=both.meanings)
    memory_bytes = round(memory_gib * GIB) if memory_gib is not None else None
    found = select(vendor=vendor, memory_at_least=memory_bytes, since=since)
    if not found:
        vendors = sorted({card.vendor for card in select()})
        raise UsageError("no card fits all of these", f"vendors: {', '.join(vendors)}")
    return [listed(card) for card in found]
