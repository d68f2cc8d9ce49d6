"""What an hour of a card costs: the dated table ``prices.toml``, one's own price, live offers of clouds."""

from __future__ import annotations

import datetime
import functools
import logging
import math
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import msgspec

from outpace.cards.lookup import find
from outpace.cards.table import load as load_cards
from outpace.errors import OutpaceError, UsageError
from outpace.records import Card
from outpace.units import GIB

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """What one card costs for an hour, on demand."""

    card: str
    usd_per_hour: float
    provider: str
    date: str
    """``2025-11`` or ``2025-11-30``."""
    source: str
    per: str = "card"
    """What one unit of the price is: always ``card``."""
    note: str | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prices: tuple[Price, ...] = ()


@functools.cache
def load() -> tuple[Price, ...]:
    """The prices of ``prices.toml``, in the order of the file."""
    path = resources.files("outpace.cards") / "prices.toml"
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File).prices


def price_of(card: Card, own: Mapping[str, float], offers: Iterable[Price] | None = None) -> Price | None:
    """The user's own price of *card* if there is one, else the lowest of *offers* (default: the table).

    Args:
        card: the card.
        own: US dollars per hour by name of the card.
        offers: prices to choose from instead of the table, such as those of :func:`live`.
    """
    if card.name in own:
        today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
        return Price(card=card.name, usd_per_hour=own[card.name], provider="own", date=today, source="given")
    known = [price for price in (load() if offers is None else offers) if price.card == card.name]
    return min(known, key=lambda price: price.usd_per_hour, default=None)


def own_price(text: str) -> tuple[str, float]:
    """Name of the card and US dollars per hour from ``CARD=USD``.

    Raises:
        UsageError: not of that form, no such card, or not a positive amount.
    """
    name, equals, amount = text.rpartition("=")
    try:
        usd = float(amount.strip().removeprefix("$"))
    except ValueError:
        usd = math.nan
    if not equals or not math.isfinite(usd) or usd <= 0:
        raise UsageError(f"'{text}' is not a price", "write it as CARD=USD, such as a100-sxm-40gb=1.29")
    return find(name).name, usd


def live() -> tuple[Price, ...]:
    """The lowest on-demand price per card and provider that the optional library gpuhunt finds now.

    Its catalogue names a model and a memory size, not the form (PCIe, SXM); such an offer is listed for each
    card that it can be, and its source says so.

    Raises:
        OutpaceError: gpuhunt is not installed, the network does not answer, or the catalogue has changed.
    """
    # It logs a traceback for each provider that does not answer.
    logging.getLogger("gpuhunt").setLevel(logging.CRITICAL)
    try:
        import gpuhunt  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise OutpaceError("live prices need the library gpuhunt", "pip install gpuhunt") from error
    try:
        catalog = gpuhunt.Catalog(auto_reload=False)
        catalog.load()
        offers = catalog.query(min_gpu_count=1, spot=False)
        found = [price for offer in offers for price in _prices(offer)]
    except (AttributeError, TypeError) as error:
        raise OutpaceError(f"gpuhunt answered in a form that is not understood: {error}") from error
    except Exception as error:  # its own errors have no common base over its versions
        why = error.__cause__ or error
        raise OutpaceError(
            f"live prices could not be fetched: {why}", "check the network, or use the prices of the table"
        ) from error
    cheapest: dict[tuple[str, str], Price] = {}
    for price in sorted(found, key=lambda price: price.usd_per_hour):
        cheapest.setdefault((price.card, price.provider), price)
    return tuple(cheapest.values())


def _prices(offer: Any) -> list[Price]:
    if not offer.gpu_name or not offer.gpu_count or not offer.gpu_memory:
        return []
    cards = _cards(offer.gpu_name, round(offer.gpu_memory * GIB))
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    source = f"gpuhunt: {offer.instance_name}, {offer.location}"
    if len(cards) > 1:
        source += f" ({offer.gpu_name} {offer.gpu_memory:g} GB, form not told)"
    return [
        Price(
            card=card,
            usd_per_hour=offer.price / offer.gpu_count,
            provider=offer.provider,
            date=today,
            source=source,
        )
        for card in cards
    ]


@functools.cache
def _cards(gpu_name: str, memory_bytes: int) -> tuple[str, ...]:
    """Cards that an offer's short name (``A100``, ``RTX4090``, ``A6000``) and memory size can mean."""
    wanted = _plain(gpu_name)
    return tuple(
        card.name
        for card in load_cards().values()
        if card.memory_bytes
        and abs(card.memory_bytes - memory_bytes) <= 0.1 * memory_bytes
        and wanted in {_plain(card.name), _plain(_without_form(card.name)), _plain(_series(card.name))}
    )


def _without_form(name: str) -> str:
    return re.sub(r"-(sxm\d?|pcie|workstation|server|max-q|\d+gb)\b", "", name)


def _series(name: str) -> str:
    return _without_form(re.sub(r"^(quadro-|rtx-)", "", name))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())
