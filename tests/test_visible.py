"""Which physical cards a process sees: lists, UUIDs, MIG slices, other orders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import OutpaceError
from outpace.visible import Physical, same_card, visible

CARDS = [
    Physical(uuid="GPU-aa11", pci_address="00000000:07:00.0", name="NVIDIA A100-SXM4-40GB"),
    Physical(uuid="GPU-aa22", pci_address="00000000:0F:00.0", name="NVIDIA A100-SXM4-40GB"),
    Physical(uuid="GPU-bb33", pci_address="00000000:47:00.0", name="NVIDIA L4"),
    Physical(uuid="MIG-cc44", pci_address="00000000:07:00.0", parent_uuid="GPU-aa11"),
]


def seen(value: str | None) -> list[str]:
    environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    return [card.uuid for card in visible(CARDS, environ)]


@pytest.mark.parametrize(
    ("value", "uuids"),
    [
        (None, ["GPU-aa11", "GPU-aa22", "GPU-bb33"]),
        ("", []),
        ("-1", []),
        ("2,0", ["GPU-bb33", "GPU-aa11"]),
        (" 1 , 2 ", ["GPU-aa22", "GPU-bb33"]),
        ("0,7,1", ["GPU-aa11"]),
        ("GPU-bb33", ["GPU-bb33"]),
        ("gpu-BB", ["GPU-bb33"]),
        ("GPU-aa22,0", ["GPU-aa22", "GPU-aa11"]),
        ("MIG-cc44", ["MIG-cc44"]),
        ("MIG-GPU-aa22/7/0", ["GPU-aa22"]),
        ("GPU-zz,0", []),
        ("nonsense", []),
    ],
)
def test_visible(value: str | None, uuids: list[str]) -> None:
    assert seen(value) == uuids


def test_the_beginning_of_several_uuids_is_refused() -> None:
    with pytest.raises(OutpaceError, match="names 2 cards"):
        seen("GPU-aa")


def test_other_makers_have_lists_of_their_own() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "1"}
    assert [card.uuid for card in visible(CARDS, environ, "HIP_VISIBLE_DEVICES")] == ["GPU-aa22"]


@given(st.text(max_size=30))
def test_any_list_gives_cards_or_a_clear_error(value: str) -> None:
    try:
        assert all(card in CARDS for card in visible(CARDS, {"CUDA_VISIBLE_DEVICES": value}))
    except OutpaceError as error:
        assert error.hint


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("GPU-aa11", "aa11", True),
        ("GPU-AA11", "gpu-aa11", True),
        ("GPU-aa11", "GPU-aa22", False),
        ("00000000:07:00.0", "0000:07:00.0", True),
        ("00000000:0F:00.0", "0000:0f:00.0", True),
        ("00000000:07:00.0", "00000001:07:00.0", False),
        (None, "GPU-aa11", False),
        (None, None, False),
        ("", "", False),
    ],
)
def test_same_card(one: str | None, other: str | None, same: bool) -> None:
    assert same_card(one, other) is same
