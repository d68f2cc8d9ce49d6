"""Prices: the table, the user's own, live offers through a module shaped like gpuhunt."""

from __future__ import annotations

import dataclasses
import re
import sys
import types
import urllib.error
from typing import Any

import pytest

from outpace.cards import load as load_cards
from outpace.cards import prices
from outpace.cards.prices import Price, live, own_price, price_of
from outpace.errors import OutpaceError, UsageError

A100, L4 = load_cards()["a100-sxm-40gb"], load_cards()["l4"]


def offer_of(card: str, usd: float, provider: str = "cloud") -> Price:
    return Price(card=card, usd_per_hour=usd, provider=provider, date="2026-01", source="a list")


def test_every_price_of_the_table_is_of_a_card_and_dated() -> None:
    for price in prices.load():
        assert price.card in load_cards()
        assert 0.01 < price.usd_per_hour < 100
        assert re.fullmatch(r"20\d\d-[01]\d(-[0-3]\d)?", price.date)
        assert price.provider
        assert price.source
        assert price.per == "card"
    priced = {price.card for price in prices.load()}
    assert {"t4", "l4", "v100-sxm2-16gb", "a100-sxm-80gb", "h100-sxm-80gb", "mi300x"} <= priced


def test_own_price_wins_over_any_other() -> None:
    found = price_of(A100, {"a100-sxm-40gb": 0.5}, [offer_of("a100-sxm-40gb", 0.1)])
    assert found is not None
    assert (found.usd_per_hour, found.provider) == (0.5, "own")


def test_the_lowest_offer_is_taken() -> None:
    offers = [offer_of("l4", 0.9), offer_of("a100-sxm-40gb", 2.0), offer_of("a100-sxm-40gb", 1.0, "other")]
    assert price_of(A100, {}, offers) == offers[2]
    assert price_of(L4, {"a100-sxm-40gb": 0.5}, offers) == offers[0]


def test_no_price_is_none_and_not_zero() -> None:
    assert price_of(A100, {}, []) is None


def test_without_offers_the_table_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "load", lambda: (offer_of("l4", 0.7),))
    assert price_of(L4, {}) == offer_of("l4", 0.7)


@pytest.mark.parametrize(
    ("text", "card", "usd"),
    [
        ("a100-sxm-40gb=1.29", "a100-sxm-40gb", 1.29),
        ("L4=$0.7", "l4", 0.7),
        ("NVIDIA A100-SXM4-40GB = 2", "a100-sxm-40gb", 2.0),
    ],
)
def test_own_price_is_read(text: str, card: str, usd: float) -> None:
    assert own_price(text) == (card, usd)


@pytest.mark.parametrize(
    "text", ["l4", "l4=", "=1", "l4=cheap", "l4=0", "l4=-1", "l4=nan", "l4=inf", "a100=1", ""]
)
def test_wrong_own_price_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        own_price(text)
    assert caught.value.hint


# ---------------------------------------------------------------- gpuhunt


@dataclasses.dataclass
class CatalogItem:
    instance_name: str
    location: str
    price: float
    cpu: int
    memory: float
    gpu_count: int
    gpu_name: str | None
    gpu_memory: float | None
    spot: bool
    provider: str


def item(
    gpu: str | None, memory: float | None, price: float, *, count: int = 1, provider: str = "aws"
) -> CatalogItem:
    return CatalogItem("vm", "here", price, 8, 32.0, count, gpu, memory, False, provider)


def install(
    monkeypatch: pytest.MonkeyPatch, items: list[CatalogItem], error: Exception | None = None
) -> None:
    class Catalog:
        def __init__(self, balance_resources: bool = True, auto_reload: bool = True) -> None:
            assert balance_resources
            assert not auto_reload
            self.loaded = False

        def load(self, version: str | None = None) -> None:
            assert version is None
            if error:
                raise error
            self.loaded = True

        def query(self, *, min_gpu_count: int | None = None, spot: bool | None = None) -> list[CatalogItem]:
            assert self.loaded
            return [one for one in items if one.gpu_count >= (min_gpu_count or 0) and one.spot == spot]

    module: Any = types.ModuleType("gpuhunt")
    module.Catalog = Catalog
    monkeypatch.setitem(sys.modules, "gpuhunt", module)


def test_live_prices_are_per_card_and_the_lowest_per_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        item("L4", 24.0, 0.8),
        item("L4", 24.0, 4.8, count=8),
        item("L4", 24.0, 0.7, provider="gcp"),
        item("RTX4090", 24.0, 0.4),
        item("A6000", 48.0, 0.5),
        item("RTX6000", 24.0, 0.6),
        item("H100NVL", 94.0, 2.5),
        item("L40S", 48.0, 1.5),
        item("MI300X", 192.0, 15.92, count=8),
        item("B300", 270.0, 6.0),
        item(None, None, 0.1),
        item("UNHEARD", 24.0, 0.1),
        item("L4", 48.0, 0.1),
    ]
    install(monkeypatch, items)
    found = {(price.card, price.provider): price.usd_per_hour for price in live()}
    assert found == {
        ("l4", "aws"): pytest.approx(0.6),
        ("l4", "gcp"): 0.7,
        ("rtx-4090", "aws"): 0.4,
        ("rtx-a6000", "aws"): 0.5,
        ("quadro-rtx-6000", "aws"): 0.6,
        ("h100-nvl-94gb", "aws"): 2.5,
        ("l40s", "aws"): 1.5,
        ("mi300x", "aws"): pytest.approx(1.99),
        ("b300-sxm-270gb", "aws"): 6.0,
    }


def test_an_offer_that_does_not_tell_the_form_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [item("A100", 80.0, 1.5)])
    found = live()
    assert {price.card for price in found} == {"a100-pcie-80gb", "a100-sxm-80gb"}
    assert all(price.source == "gpuhunt: vm, here (A100 80 GB, form not told)" for price in found)


def test_live_without_gpuhunt_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with pytest.raises(OutpaceError, match="gpuhunt") as caught:
        live()
    assert caught.value.hint == "pip install gpuhunt"


class GPUHuntError(Exception):
    """What the library raises when no provider answers, with the last error as its cause."""


def all_providers_failed() -> GPUHuntError:
    error = GPUHuntError("Failed to load catalogs of all providers")
    error.__cause__ = urllib.error.URLError("no route to host")
    return error


@pytest.mark.parametrize("error", [urllib.error.URLError("no route to host"), all_providers_failed()])
def test_live_without_network_is_a_clear_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [], error)
    with pytest.raises(OutpaceError, match="no route to host") as caught:
        live()
    assert "network" in (caught.value.hint or "")


def test_live_with_a_changed_library_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", types.ModuleType("gpuhunt"))
    with pytest.raises(OutpaceError, match="not understood"):
        live()
