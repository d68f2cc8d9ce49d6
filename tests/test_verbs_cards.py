"""Cards listed and side by side, from Python and on the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

from outpace.errors import UsageError
from outpace.report import cards as report
from outpace.verbs.cards import Comparison, cards, live

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def test_all_cards_are_listed_within_100_columns() -> None:
    listed = cards()
    assert isinstance(listed, list)
    assert len(listed) >= 90
    shown = report.table(listed).splitlines()
    assert len(shown) == len(listed) + 3
    assert max(map(len, shown)) <= 100


def test_the_list_shows_the_16_bit_matrix_peak_where_there_is_one() -> None:
    listed = cards()
    assert isinstance(listed, list)
    lines = {line.split()[0]: line.split() for line in report.table(listed).splitlines()[2:-1]}
    assert lines["v100-sxm2-16gb"][1:7] == ["2017", "16", "900", "125", "15.7", "300"]
    assert lines["p40"][4] == "-"


def test_filters() -> None:
    found = cards(vendor="NVIDIA", memory_gib=40, since=2020)
    assert isinstance(found, list)
    names = {card.name for card in found}
    assert "a100-sxm-40gb" in names
    assert "v100-sxm2-32gb" not in names
    assert all(card.vendor == "nvidia" for card in found)
    with pytest.raises(UsageError, match="no card fits"):
        cards(vendor="nobody")


def test_side_by_side() -> None:
    found = cards(["v100 sxm2 32gb", "A100-SXM-40GB"])
    assert isinstance(found, Comparison)
    shown = report.side_by_side(found)
    assert "900 GB/s" in shown
    assert "1,555 GB/s (x1.73)" in shown
    assert "5,120" in shown
    assert "6,912 (x1.35)" in shown
    assert "bandwidth-bound work" in shown
    assert "energy" in shown


def test_one_card_tells_its_sources() -> None:
    found = cards(["l4"])
    assert isinstance(found, Comparison)
    shown = report.side_by_side(found)
    assert "300 GB/s" in shown
    assert "source of memory" in shown


def test_a_card_named_twice_is_one() -> None:
    found = cards(["t4", "Tesla T4"])
    assert isinstance(found, Comparison)
    assert [card.name for card in found.cards] == ["t4"]


def test_own_prices_win() -> None:
    found = cards(["l4"], own=["l4=0.123"])
    assert isinstance(found, Comparison)
    assert found.cards[0].price is not None
    assert found.cards[0].price.usd_per_hour == 0.123
    with pytest.raises(UsageError):
        cards(own=["l4"])
    with pytest.raises(UsageError, match="unknown source of prices"):
        live("tomorrow")
    assert live("table") is None


def test_json_has_the_documented_names(cli: Cli) -> None:
    listed = json.loads(cli("cards", "--json").stdout)
    a100 = next(card for card in listed if card["name"] == "a100-sxm-40gb")
    assert a100["vendor"] == "nvidia"
    assert a100["architecture"] == "ampere"
    assert a100["units"] == 108
    assert a100["vector_cores"] == 6912
    assert a100["memory_bytes"] == 40 * 2**30
    assert a100["memory_bandwidth_bytes_per_second"] == 1555e9
    assert a100["matrix_flops_per_second"]["bf16"] == 312e12
    assert a100["vector_flops_per_second"]["fp32"] == 19.5e12
    assert a100["board_power_watts"] == 400
    both = json.loads(cli("cards", "--json", "t4", "l4").stdout)
    assert [card["name"] for card in both["cards"]] == ["t4", "l4"]
    assert both["facts"]
    assert both["meanings"]


def test_an_ambiguous_name_lists_what_it_could_be(cli: Cli) -> None:
    done = cli("cards", "a100")
    assert done.returncode == 2
    for name in ("a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm-40gb", "a100-sxm-80gb"):
        assert name in done.stderr
    assert cli("cards", "NVIDIA A100-SXM4-80GB").returncode == 0
