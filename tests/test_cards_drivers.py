"""Strings that drivers report go to the right card, or to none."""

from __future__ import annotations

import pytest

from outpace.cards import load, match, parent_of_slice
from outpace.units import GIB, MIB

# (as reported, MiB of memory as reported or None, card). Written from reports, not from the table.
REPORTED: list[tuple[str, int | None, str]] = [
    ("Tesla K80", 11441, "k80"),
    ("Tesla M40", 11443, "m40-12gb"),
    ("Tesla M40 24GB", 22945, "m40-24gb"),
    ("Tesla P4", 7611, "p4"),
    ("Tesla P40", 22919, "p40"),
    ("Tesla P100-PCIE-12GB", 12193, "p100-pcie-12gb"),
    ("Tesla P100-PCIE-16GB", 16276, "p100-pcie-16gb"),
    ("Tesla P100-SXM2-16GB", 16280, "p100-sxm2-16gb"),
    ("Tesla V100-PCIE-16GB", 16160, "v100-pcie-16gb"),
    ("Tesla V100-PCIE-32GB", 32510, "v100-pcie-32gb"),
    ("Tesla V100-SXM2-16GB", 16160, "v100-sxm2-16gb"),
    ("Tesla V100-SXM2-32GB", 32510, "v100-sxm2-32gb"),
    ("Tesla V100-SXM3-32GB", 32510, "v100-sxm3-32gb"),
    ("Tesla V100S-PCIE-32GB", 32510, "v100s-pcie-32gb"),
    ("Tesla T4", 15109, "t4"),
    ("Tesla T4", 15360, "t4"),
    ("Tesla T4", None, "t4"),
    ("NVIDIA A2", 15356, "a2"),
    ("NVIDIA A10", 23028, "a10"),
    ("NVIDIA A10G", 23028, "a10g"),
    ("NVIDIA A16", 15356, "a16"),
    ("NVIDIA A30", 24576, "a30"),
    ("NVIDIA A40", 46068, "a40"),
    ("NVIDIA A40", 45634, "a40"),
    ("A100-PCIE-40GB", 40536, "a100-pcie-40gb"),
    ("NVIDIA A100-PCIE-40GB", 40960, "a100-pcie-40gb"),
    ("A100-SXM4-40GB", 40537, "a100-sxm-40gb"),
    ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm-40gb"),
    ("A100-SXM4-80GB", 81251, "a100-sxm-80gb"),
    ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm-80gb"),
    ("nvidia a100-sxm4-80gb", None, "a100-sxm-80gb"),
    ("NVIDIA A100 80GB PCIe", 81920, "a100-pcie-80gb"),
    ("NVIDIA A100 80GB PCIe", None, "a100-pcie-80gb"),
    ("NVIDIA L4", 23034, "l4"),
    ("NVIDIA L4", 22579, "l4"),
    ("NVIDIA L40", 46068, "l40"),
    ("NVIDIA L40S", 46068, "l40s"),
    ("NVIDIA L40S", 45458, "l40s"),
    ("NVIDIA H100 PCIe", 81559, "h100-pcie-80gb"),
    ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm-80gb"),
    ("NVIDIA H100 80GB HBM3", 81078, "h100-sxm-80gb"),
    ("NVIDIA H100 NVL", 95830, "h100-nvl-94gb"),
    ("NVIDIA H200", 143771, "h200-sxm-141gb"),
    ("NVIDIA H200 NVL", 143771, "h200-nvl-141gb"),
    ("NVIDIA GH200 480GB", 97871, "gh200-96gb"),
    ("NVIDIA GH200 120GB", 97871, "gh200-96gb"),
    ("NVIDIA GH200 144G HBM3e", 145920, "gh200-144gb"),
    ("NVIDIA B200", 183359, "b200-sxm-180gb"),
    ("NVIDIA GB200", 189471, "gb200-186gb"),
    ("NVIDIA B300 SXM6 AC", 275040, "b300-sxm-270gb"),
    ("NVIDIA GB300", 284208, "gb300-279gb"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, "rtx-pro-6000-workstation"),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887, "rtx-pro-6000-max-q"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "rtx-pro-6000-server"),
    ("GeForce GTX TITAN X", 12212, "gtx-titan-x"),
    ("TITAN X (Pascal)", 12196, "titan-x-pascal"),
    ("NVIDIA TITAN X (Pascal)", 12196, "titan-x-pascal"),
    ("TITAN Xp", 12194, "titan-xp"),
    ("NVIDIA TITAN Xp", 12194, "titan-xp"),
    ("TITAN V", 12066, "titan-v"),
    ("NVIDIA TITAN V", 12288, "titan-v"),
    ("TITAN RTX", 24217, "titan-rtx"),
    ("NVIDIA TITAN RTX", 24576, "titan-rtx"),
    ("GeForce GTX 1080 Ti", 11178, "gtx-1080-ti"),
    ("NVIDIA GeForce GTX 1080 Ti", 11264, "gtx-1080-ti"),
    ("GeForce RTX 2060", 5934, "rtx-2060-6gb"),
    ("NVIDIA GeForce RTX 2060", 12288, "rtx-2060-12gb"),
    ("NVIDIA GeForce RTX 2060 SUPER", 8192, "rtx-2060-super"),
    ("GeForce RTX 2070", 7982, "rtx-2070"),
    ("GeForce RTX 2070 SUPER", 7982, "rtx-2070-super"),
    ("GeForce RTX 2080", 7982, "rtx-2080"),
    ("NVIDIA GeForce RTX 2080 SUPER", 8192, "rtx-2080-super"),
    ("GeForce RTX 2080 Ti", 11019, "rtx-2080-ti"),
    ("NVIDIA GeForce RTX 2080 Ti", 11264, "rtx-2080-ti"),
    ("NVIDIA GeForce RTX 3050", 8192, "rtx-3050-8gb"),
    ("NVIDIA GeForce RTX 3060", 8192, "rtx-3060-8gb"),
    ("NVIDIA GeForce RTX 3060", 12288, "rtx-3060-12gb"),
    ("NVIDIA GeForce RTX 3060", 12045, "rtx-3060-12gb"),
    ("NVIDIA GeForce RTX 3060 Ti", 8192, "rtx-3060-ti"),
    ("GeForce RTX 3070", 7982, "rtx-3070"),
    ("NVIDIA GeForce RTX 3070", 8192, "rtx-3070"),
    ("NVIDIA GeForce RTX 3070 Ti", 8192, "rtx-3070-ti"),
    ("GeForce RTX 3080", 10018, "rtx-3080-10gb"),
    ("NVIDIA GeForce RTX 3080", 10240, "rtx-3080-10gb"),
    ("NVIDIA GeForce RTX 3080", 12288, "rtx-3080-12gb"),
    ("NVIDIA GeForce RTX 3080 Ti", 12288, "rtx-3080-ti"),
    ("GeForce RTX 3090", 24268, "rtx-3090"),
    ("NVIDIA GeForce RTX 3090", 24576, "rtx-3090"),
    ("NVIDIA GeForce RTX 3090 Ti", 24564, "rtx-3090-ti"),
    ("NVIDIA GeForce RTX 4060", 8188, "rtx-4060"),
    ("NVIDIA GeForce RTX 4060 Ti", 8188, "rtx-4060-ti-8gb"),
    ("NVIDIA GeForce RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
    ("NVIDIA GeForce RTX 4070", 12282, "rtx-4070"),
    ("NVIDIA GeForce RTX 4070 SUPER", 12282, "rtx-4070-super"),
    ("NVIDIA GeForce RTX 4070 Ti", 12282, "rtx-4070-ti"),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", 16376, "rtx-4070-ti-super"),
    ("NVIDIA GeForce RTX 4080", 16376, "rtx-4080"),
    ("NVIDIA GeForce RTX 4080 SUPER", 16376, "rtx-4080-super"),
    ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
    ("NVIDIA GeForce RTX 4090 D", 24564, "rtx-4090-d"),
    ("NVIDIA GeForce RTX 5050", 8151, "rtx-5050"),
    ("NVIDIA GeForce RTX 5060", 8151, "rtx-5060"),
    ("NVIDIA GeForce RTX 5060 Ti", 8151, "rtx-5060-ti-8gb"),
    ("NVIDIA GeForce RTX 5060 Ti", 16311, "rtx-5060-ti-16gb"),
    ("NVIDIA GeForce RTX 5070", 12227, "rtx-5070"),
    ("NVIDIA GeForce RTX 5070 Ti", 16303, "rtx-5070-ti"),
    ("NVIDIA GeForce RTX 5080", 16303, "rtx-5080"),
    ("NVIDIA GeForce RTX 5090", 32607, "rtx-5090"),
    ("Quadro RTX 4000", 7982, "quadro-rtx-4000"),
    ("Quadro RTX 5000", 16125, "quadro-rtx-5000"),
    ("Quadro RTX 6000", 24220, "quadro-rtx-6000"),
    ("Quadro RTX 8000", 48601, "quadro-rtx-8000"),
    ("NVIDIA RTX A2000", 6138, "rtx-a2000-6gb"),
    ("NVIDIA RTX A2000 12GB", 12282, "rtx-a2000-12gb"),
    ("NVIDIA RTX A4000", 16376, "rtx-a4000"),
    ("NVIDIA RTX A4500", 20470, "rtx-a4500"),
    ("NVIDIA RTX A5000", 24564, "rtx-a5000"),
    ("NVIDIA RTX A5500", 24564, "rtx-a5500"),
    ("RTX A6000", 48685, "rtx-a6000"),
    ("NVIDIA RTX A6000", 49140, "rtx-a6000"),
    ("NVIDIA RTX A6000", 46068, "rtx-a6000"),
    ("NVIDIA RTX 4000 SFF Ada Generation", 20475, "rtx-4000-sff-ada"),
    ("NVIDIA RTX 4000 Ada Generation", 20475, "rtx-4000-ada"),
    ("NVIDIA RTX 4500 Ada Generation", 24570, "rtx-4500-ada"),
    ("NVIDIA RTX 5000 Ada Generation", 32760, "rtx-5000-ada"),
    ("NVIDIA RTX 6000 Ada Generation", 49140, "rtx-6000-ada"),
]

UNKNOWN = [
    ("NVIDIA GeForce RTX 3080", None),  # 10 or 12 GiB
    ("NVIDIA GeForce RTX 3080", 16384),  # there is none
    ("NVIDIA GeForce RTX 3080 Laptop GPU", 16384),
    ("NVIDIA GeForce RTX 3050", 6144),  # another chip under the same name
    ("NVIDIA H100", 81559),
    ("NVIDIA A100", 81920),
    ("H100", None),
    ("A100", None),
    ("Tesla T40", None),
    ("NVIDIA L40SX", None),
    ("NVIDIA H800", 81559),
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
    ("GRID A100-10C", None),
    ("cpu", None),
    ("", None),
]


def test_more_than_a_hundred_strings_are_tried() -> None:
    assert len({text for text, _, _ in REPORTED}) >= 100


@pytest.mark.parametrize(("text", "mebibytes", "name"), REPORTED)
def test_reported_string_goes_to_the_right_card(text: str, mebibytes: int | None, name: str) -> None:
    found = match(text, None if mebibytes is None else mebibytes * MIB)
    assert found is load()[name]


@pytest.mark.parametrize(("text", "mebibytes"), UNKNOWN)
def test_an_unknown_or_doubtful_string_goes_to_no_card(text: str, mebibytes: int | None) -> None:
    assert match(text, None if mebibytes is None else mebibytes * MIB) is None


def test_each_name_of_each_card_matches_that_card_only() -> None:
    for card in load().values():
        for text in card.driver_names:
            assert match(text, card.memory_bytes) is card
            assert match(f"  {text.upper()} ", card.memory_bytes) is card
            assert match(text) in (card, None)
            assert parent_of_slice(text) is None, text


SLICES: list[tuple[str, str, str, str | None, int, float | None]] = [
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "mig", "1g.5gb", "a100-sxm-40gb", 5, 1 / 7),
    ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "mig", "3g.40gb", "a100-sxm-80gb", 40, 3 / 7),
    ("NVIDIA A100 80GB PCIe MIG 7g.80gb", "mig", "7g.80gb", "a100-pcie-80gb", 80, 1.0),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "mig", "1g.10gb+me", "h100-sxm-80gb", 10, 1 / 7),
    ("NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb", "mig", "1c.2g.20gb", "h100-sxm-80gb", 20, 1 / 7),
    ("NVIDIA A30 MIG 2g.12gb", "mig", "2g.12gb", "a30", 12, 2 / 4),
    ("NVIDIA X900 MIG 1g.5gb", "mig", "1g.5gb", None, 5, None),
    ("GRID A100-10C", "vgpu", "10C", "a100-pcie-40gb", 10, None),
    ("GRID A100D-80C", "vgpu", "80C", "a100-pcie-80gb", 80, None),
    ("GRID A100D-1-20C", "vgpu", "1-20C", "a100-pcie-80gb", 20, 1 / 7),
    ("GRID A100X-40C", "vgpu", "40C", "a100-sxm-40gb", 40, None),
    ("NVIDIA A100DX-40C", "vgpu", "40C", "a100-sxm-80gb", 40, None),
    ("NVIDIA A10-8Q", "vgpu", "8Q", "a10", 8, None),
    ("NVIDIA A16-2B", "vgpu", "2B", "a16", 2, None),
    ("GRID V100D-16Q", "vgpu", "16Q", "v100-pcie-32gb", 16, None),
    ("GRID T4-16Q", "vgpu", "16Q", "t4", 16, None),
    ("GRID P40-24Q", "vgpu", "24Q", "p40", 24, None),
    ("GRID RTX6000-12Q", "vgpu", "12Q", "quadro-rtx-6000", 12, None),
    ("NVIDIA RTXA6000-48Q", "vgpu", "48Q", "rtx-a6000", 48, None),
    ("NVIDIA RTX6000-Ada-48Q", "vgpu", "48Q", "rtx-6000-ada", 48, None),
    ("NVIDIA L40S-48C", "vgpu", "48C", "l40s", 48, None),
    ("NVIDIA H100XM-80C", "vgpu", "80C", "h100-sxm-80gb", 80, None),
    ("GRID Z900-8Q", "vgpu", "8Q", None, 8, None),
]


@pytest.mark.parametrize("case", SLICES, ids=lambda case: case[0])
def test_slices_are_recognised(case: tuple[str, str, str, str | None, int, float | None]) -> None:
    text, kind, profile, parent, gib, share = case
    found = parent_of_slice(text)
    assert found is not None
    assert (found.kind, found.profile, found.memory_bytes) == (kind, profile, gib * GIB)
    assert found.parent is (load()[parent] if parent else None)
    assert found.compute_share == (pytest.approx(share) if share else None)
    assert match(text) is None, "a slice is not a card"


@pytest.mark.parametrize("text", [text for text, _, _ in REPORTED] + ["cpu", "NVIDIA H100", "AMD Radeon-8"])
def test_whole_cards_are_no_slices(text: str) -> None:
    assert parent_of_slice(text) is None
