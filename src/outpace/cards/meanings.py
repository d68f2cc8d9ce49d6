"""What the difference between two cards means for a training, one line each. Limits, not predictions."""

from __future__ import annotations

import msgspec

from outpace.records import Card
from outpace.units import GIB, GIGA, si

TRAINING_DTYPES = ("bf16", "fp16", "tf32", "fp8", "fp4", "fp64")
_INSTEAD = {
    "bf16": ("fp16",),
    "fp16": ("bf16",),
    "tf32": ("fp32",),
    "fp8": ("bf16", "fp16"),
    "fp4": ("fp8", "bf16", "fp16"),
}
"""What one trains in where the matrix units lack the dtype."""
_VECTOR = {"bf16": "fp32", "fp16": "fp32", "tf32": "fp32", "fp8": "fp32", "fp4": "fp32", "fp64": "fp64"}
"""What runs on the vector units where there are no matrix units for it."""


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """One line on what *card* brings over the first card."""

    card: str
    topic: str
    """``bandwidth``, ``memory``, a dtype of the matrix units, or ``energy``."""
    ratio: float | None
    """Over the first card; ``None`` where there is nothing to divide."""
    text: str


def meanings(first: Card, other: Card) -> list[Meaning]:
    """What *other* brings over *first*: bandwidth, memory, each precision of the matrix units, energy."""
    found = [_bandwidth(first, other), _memory(first, other)]
    found += [_matrix(first, other, dtype) for dtype in TRAINING_DTYPES]
    found.append(_energy(first, other))
    return [meaning for meaning in found if meaning is not None]


def _bandwidth(first: Card, other: Card) -> Meaning | None:
    a, b = first.memory_bandwidth_bytes_per_second, other.memory_bandwidth_bytes_per_second
    if not a or not b:
        return None
    work = "bandwidth-bound work (normalisation, activations, optimizers, small batches)"
    text = f"{work}: at most {_times(b / a)}, {b / GIGA:,.0f} against {a / GIGA:,.0f} GB/s"
    return Meaning(card=other.name, topic="bandwidth", ratio=b / a, text=text)


def _memory(first: Card, other: Card) -> Meaning | None:
    a, b = first.memory_bytes, other.memory_bytes
    if not a or not b or a == b:
        return None
    change = "a larger model or batch fits" if b > a else "what fills the first card does not fit"
    text = f"memory: {b / GIB:g} GiB instead of {a / GIB:g} GiB, {change}"
    return Meaning(card=other.name, topic="memory", ratio=b / a, text=text)


def _matrix(first: Card, other: Card, dtype: str) -> Meaning | None:
    """Matrix-bound work in *dtype*, each card as well as it can; nothing where neither has units for it."""
    if dtype not in first.matrix_flops_per_second and dtype not in other.matrix_flops_per_second:
        return None
    (way_a, a), (way_b, b) = _best(first, dtype), _best(other, dtype)
    lead = "fp32 training with tf32 allowed" if dtype == "tf32" else f"{dtype} matrix-bound work"
    if a is None or b is None:
        lacking = first if a is None else other
        text = f"{lead}: {lacking.name} has no figure for it"
        return Meaning(card=other.name, topic=dtype, ratio=None, text=text)
    text = f"{lead}: at most {_times(b / a)}, {_flops(b)} against {_flops(a)}"
    for card, way in ((first, way_a), (other, way_b)):
        if way:
            text += f"; {card.name} has no {dtype} matrix units and {way}"
    return Meaning(card=other.name, topic=dtype, ratio=b / a, text=text)


def _best(card: Card, dtype: str) -> tuple[str, float | None]:
    """How the card trains in *dtype*: what it does instead (empty if it has the dtype), and that peak."""
    matrix, vector = card.matrix_flops_per_second, card.vector_flops_per_second
    if dtype in matrix:
        return "", matrix[dtype]
    for instead in _INSTEAD.get(dtype, ()):
        if instead in matrix:
            scaling = " with loss scaling" if (dtype, instead) == ("bf16", "fp16") else ""
            return f"trains in {instead}{scaling}", matrix[instead]
    return f"runs {_VECTOR[dtype]} on its vector units", vector.get(_VECTOR[dtype])


def _energy(first: Card, other: Card) -> Meaning | None:
    """Work per joule at full load, each card in the 16-bit dtype that it trains in, or else in fp32."""
    watts_a, watts_b = first.board_power_watts, other.board_power_watts
    if not watts_a or not watts_b:
        return None
    text = f"energy: {watts_b:g} W instead of {watts_a:g} W at full load"
    (way_a, a), (way_b, b) = _best(first, "bf16"), _best(other, "bf16")
    if not a or not b:
        return Meaning(card=other.name, topic="energy", ratio=None, text=text)
    ratio = (b / watts_b) / (a / watts_a)
    text += f", {_times(ratio)} the 16-bit matrix work per joule"
    text += "".join(f"; {card.name} {way}" for card, way in ((first, way_a), (other, way_b)) if way)
    return Meaning(card=other.name, topic="energy", ratio=ratio, text=text)


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"


def _flops(value: float) -> str:
    return si(value, "FLOP/s")
