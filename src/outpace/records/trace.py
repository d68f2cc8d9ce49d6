"""The operators of one training step. Reading one needs no framework."""

from __future__ import annotations

import msgspec

from outpace.records.things import Host

#: What an operator is, whatever its framework calls it.
KINDS = (
    "matmul",
    "convolution",
    "attention",
    "rnn",
    "normalization",
    "pooling",
    "softmax",  # and the losses made of it
    "embedding",
    "elementwise",
    "reduction",
    "copy",  # layout, type, concatenation, indexing: no arithmetic
    "random",
    "optimizer",
    "sort",
    "communication",
    "other",
)

PHASES = ("forward", "backward", "optimizer")


class Operator(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One kind of call in a training step; equal calls are one operator with a ``count``.

    ``flops``, ``bytes_read`` and ``bytes_written`` are of one call; ``seconds`` is of all ``count`` calls.
    """

    kind: str
    """One of `KINDS`."""
    name: str
    """As the framework calls it: ``aten.convolution_backward``, ``dot_general``, ``Conv2D``."""
    phase: str
    """One of `PHASES`."""
    dtype: str
    """Of the arithmetic: ``fp32``, ``bf16``, ``int64`` …"""
    inputs: tuple[tuple[int, ...], ...] = ()
    """Shapes of the tensors it reads."""
    outputs: tuple[tuple[int, ...], ...] = ()
    flops: int = 0
    """A multiplication and an addition are two."""
    bytes_read: int = 0
    bytes_written: int = 0
    count: int = 1
    seconds: float | None = None
    """Where the calls were timed one by one; good for ranking, not for adding up."""
    attributes: dict[str, int | bool | str | tuple[int, ...]] = {}
    """What else decides its cost: ``stride``, ``groups``, ``causal``, ``layers``, ``layout`` …"""
    guessed: bool = False
    """Its FLOPs or bytes are not known for sure."""


class StepMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a training step keeps in memory, by use. ``None``: not known."""

    parameters_bytes: int | None = None
    gradients_bytes: int | None = None
    optimizer_state_bytes: int | None = None
    activations_bytes: int | None = None
    """What the forward pass saves for the backward pass."""


class Trace(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="trace"):
    """The operators of one training step in steady state. See ``docs/records.md``."""

    version: int = 1
    outpace: str
    target: str
    script: str
    args: list[str]
    script_sha256: str | None = None
    framework: str
    """``torch``, ``jax``, ``keras on tensorflow`` …"""
    versions: dict[str, str] = {}
    host: Host
    device: str
    """Where the step ran: ``cpu``, ``cuda:0``, or ``meta`` when only shapes were computed."""
    samples: int | None = None
    """Samples in the step."""
    operators: list[Operator]
    memory: StepMemory | None = None
    settings: dict[str, str] = {}
    """What decides which units compute: ``matmul_fp32``, ``convolution_fp32`` (``tf32`` or ``fp32``)."""
    notes: list[str] = []
