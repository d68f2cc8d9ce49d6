"""What a buyer needs to know, in a sentence, and what a prediction does not know."""

from __future__ import annotations

from collections.abc import Sequence

from outpace.prediction.data_parallel import Exchange
from outpace.prediction.step import Step
from outpace.records import Card, Operator, Prediction, Trace


def warnings(
    found: Step,
    operators: Sequence[Operator],
    card: Card,
    basis: str,
    trace: Trace,
    exchanged: Exchange,
) -> list[str]:
    """What makes this prediction less sure."""
    told = []
    if basis == "roofline":
        told.append(
            f"no {card.vendor} card like this one was measured: roofline times a constant, wide interval"
        )
    if found.unknown:
        names = ", ".join(found.unknown[:5]) + (" …" if len(found.unknown) > 5 else "")
        told.append(f"bounded by the bytes of their tensors, since their cost is not known: {names}")
    heavy = {operator.kind for operator in operators}
    if card.vendor != "nvidia" and heavy & {"convolution", "rnn"}:
        told.append(
            "assumes tuned convolution and RNN kernels; on AMD and Intel cards they may be far slower"
        )
    if trace.device == "cpu" and any("flash_attention_for_cpu" in operator.name for operator in operators):
        told.append("attention as the CPU computes it, taken for the fused kernel of the card")
    if exchanged.exposed:
        told.append(f"gradients over {exchanged.link}, rates from its datasheet; not calibrated")
    return told


def advice(prediction: Prediction, operators: Sequence[Operator], found: Step, card: Card) -> str | None:
    """What limits the step, and what to change first."""
    limit = prediction.limited_by
    if limit is None:
        return None
    share = f"{100 * prediction.shares.get(limit, 0.0):.0f} % of the step is {_WORK[limit]}"
    return f"{share}: {_first_change(limit, operators, found, card)}"


_WORK = {
    "matrix units": "arithmetic of matrix units",
    "vector units": "arithmetic of vector units",
    "memory bandwidth": "moving data",
    "host launches": "the host launching kernels",
    "data": "waiting for data",
    "interconnect": "exchanging gradients",
}


_ELSEWHERE = {
    "host launches": "a larger batch, or compiling the model, helps more than a faster card",
    "data": "more loading workers help, no card does",
    "interconnect": "accumulate gradients, or a faster link",
}


def _first_change(limit: str, operators: Sequence[Operator], found: Step, card: Card) -> str:
    if limit in _ELSEWHERE:
        return _ELSEWHERE[limit]
    heavy = ("matmul", "convolution", "attention")
    products = {operator.dtype for operator in operators if operator.kind in heavy}
    half = "bf16-amp" if "bf16" in card.matrix_flops_per_second else "fp16-amp"
    if limit == "vector units" and "fp32" in products and card.matrix_flops_per_second:
        usable = "tf32" if "tf32" in card.matrix_flops_per_second else half
        return f"fp32 products leave the matrix units idle; {usable} would use them"
    if limit != "memory bandwidth":
        wide = bool(products & {"tf32", "fp32"}) and limit == "matrix units"
        return f"{half} computes faster than fp32" if wide else "a card with more FLOPs is faster"
    largest = max(found.kinds, key=lambda name: found.kinds[name])
    if not products & {"fp16", "bf16"}:
        return f"16-bit types move half of the data (most of it: {largest})"
    return f"compiling fuses what moves data (most of it: {largest}); else a card with more bandwidth"
