"""A card is found by what a person writes; a name that could be several is refused with the difference."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.cards import find, load
from outpace.errors import UsageError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A100 SXM 40GB", "a100-sxm-40gb"),
        ("a100 sxm4 40 gb", "a100-sxm-40gb"),
        ("a100-sxm-40g", "a100-sxm-40gb"),
        ("40GB A100 SXM", "a100-sxm-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("a100 pcie 80", "a100-pcie-80gb"),
        ("h100 nvl", "h100-nvl-94gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("h100 sxm5", "h100-sxm-80gb"),
        ("b200", "b200-sxm-180gb"),
        ("L4", "l4"),
        ("l40", "l40"),
        ("nvidia l40s", "l40s"),
        ("Tesla T4", "t4"),
        ("3090", "rtx-3090"),
        ("RTX3090", "rtx-3090"),
        ("GeForce RTX 4090", "rtx-4090"),
        ("4070tisuper", "rtx-4070-ti-super"),
        ("RTX 4070 Ti", "rtx-4070-ti"),
        ("rtx 5060ti 16gb", "rtx-5060-ti-16gb"),
        ("1080ti", "gtx-1080-ti"),
        ("A6000", "rtx-a6000"),
        ("6000 ada", "rtx-6000-ada"),
        ("titan v", "titan-v"),
        ("Titan RTX", "titan-rtx"),
        ("titanx pascal", "titan-x-pascal"),
        ("V100S", "v100s-pcie-32gb"),
        ("K80", "k80"),
    ],
)
def test_forgiving_names(text: str, name: str) -> None:
    assert find(text) is load()[name]


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("A100", {"a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm-40gb", "a100-sxm-80gb"}),
        ("a100 80gb", {"a100-pcie-80gb", "a100-sxm-80gb"}),
        ("a100 sxm", {"a100-sxm-40gb", "a100-sxm-80gb"}),
        ("H100", {"h100-pcie-80gb", "h100-sxm-80gb", "h100-nvl-94gb"}),
        ("rtx 3060", {"rtx-3060-8gb", "rtx-3060-12gb"}),
        ("NVIDIA GeForce RTX 3080", {"rtx-3080-10gb", "rtx-3080-12gb"}),
        ("GeForce RTX 3080", {"rtx-3080-10gb", "rtx-3080-12gb"}),
        ("TITAN X", {"gtx-titan-x", "titan-x-pascal"}),
        ("rtx 4000", {"quadro-rtx-4000", "rtx-4000-ada", "rtx-4000-sff-ada"}),
        ("rtx pro 6000", {"rtx-pro-6000-workstation", "rtx-pro-6000-server", "rtx-pro-6000-max-q"}),
    ],
)
def test_ambiguous_name_lists_the_candidates(text: str, candidates: set[str]) -> None:
    with pytest.raises(UsageError, match=r"could be any of \d+ cards") as caught:
        find(text)
    assert caught.value.hint is not None
    listed = re.findall(r"([a-z0-9-]+) \(", caught.value.hint)
    assert set(listed) == candidates
    assert len(listed) == len(candidates)


def test_ambiguous_name_tells_the_difference() -> None:
    with pytest.raises(UsageError) as caught:
        find("a100 80gb")
    hint = caught.value.hint or ""
    assert "a100-pcie-80gb (1,935 GB/s, 300 W" in hint
    assert "a100-sxm-80gb (2,039 GB/s, 400 W" in hint
    assert "GiB" not in hint, "both have the same memory"


@pytest.mark.parametrize(
    ("text", "meant"),
    [("a100-sxm-4Ogb", "a100"), ("rtx-4091", "rtx-4090"), ("h1000", "h100"), ("v10O", "v100")],
)
def test_unknown_name_suggests_close_ones(text: str, meant: str) -> None:
    with pytest.raises(UsageError, match="no card is called") as caught:
        find(text)
    assert meant in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["zzzzz", "", "   ", "nvidia", "-", "🂡"])
def test_hopeless_name_points_to_the_list(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(text)
    assert caught.value.hint


SEPARATORS = st.sampled_from([" ", "-", "_", "  ", "/", ""])


@st.composite
def mangled(draw: st.DrawFn) -> tuple[str, str]:
    """A card's name or title with other letters' case and other separators, and the card's name."""
    card = load()[draw(st.sampled_from(sorted(load())))]
    words = re.split(r"[ -]", draw(st.sampled_from([card.name, card.title])))
    text = words[0] + "".join(draw(SEPARATORS) + word for word in words[1:])
    cased = "".join(draw(st.sampled_from([letter.upper(), letter.lower()])) for letter in text)
    return draw(st.sampled_from(["", " ", "-"])) + cased + draw(st.sampled_from(["", " "])), card.name


@given(mangled())
def test_case_spaces_and_dashes_do_not_matter(case: tuple[str, str]) -> None:
    text, name = case
    assert find(text).name == name


@given(st.text(max_size=30))
def test_any_text_is_a_card_or_a_usage_error(text: str) -> None:
    try:
        name = find(text).name
    except UsageError:
        return
    assert name in load()
