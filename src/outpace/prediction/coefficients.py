"""The fitted numbers of the model: data, made by ``bench/calibrate.py``, never by hand."""

from __future__ import annotations

import functools
from importlib import resources

import msgspec


class Sustained(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What share of a datasheet's rate cards sustain, as logarithms that add up.

    ``mean`` of all cards, ``architectures`` and ``cards`` how they differ from that; ``sd`` how far an
    architecture or a card without data may be off.
    """

    mean: float = 0.0
    architectures: dict[str, float] = {}
    cards: dict[str, float] = {}
    vendors: list[str] = []
    """Whose cards were measured; of others nothing is known but the datasheet."""
    sd: dict[str, float] = {}
    """``architecture`` unseen, ``card`` unseen, ``seen``."""


class Power(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a tight power limit holds the clock down: see `hardware.power_term`."""

    exponent: float
    watts: float
    """Per 1000 vector lanes and GHz at 12 nm, below which a card cannot hold its clock."""
    process: float
    """Watts scale with the process to this power."""


class Host(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds that a host needs for one call of a class, eager; compiled and graphs by a factor."""

    forward_heavy: float
    forward_light: float
    backward_heavy: float
    backward_light: float
    optimizer: float
    compiled: float
    graphs: float
    smallest_call: float
    """Of this host, as `outpace measure` would find it."""
    kernel_seconds: float
    """On the card, from one kernel to the next."""
    sd: float
    """Logarithm: how much hosts differ."""


class Energy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Watts of a board as shares of its power limit; see `energy`."""

    idle: float
    busy: float
    """While kernels run, whatever they do."""
    matrix: float
    vector: float
    memory: float
    """More at the full rate of the datasheet."""
    voltage_floor: float
    """Clock, as a share, below which the voltage falls no further."""
    regulated: float
    """Mean power over the limit, where that is what holds."""
    sd: float


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of a card that no tensor accounts for, and how the allocator rounds; see `memory`."""

    context: dict[str, float]
    """By vendor: kernels and handles of the framework and the driver."""
    workspace: float
    rounding: float
    sd: float


class Links(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How well cards exchange gradients; see `data_parallel`."""

    efficiency: float
    latency_seconds: float
    overlap: float
    sd: float


class Coefficients(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that was fitted. Logarithms are natural."""

    made_by: str
    made_from: list[str]
    smoothness: float
    """Of the maximum of arithmetic and traffic: 1 adds them up, large takes the larger."""
    cache_boost: float
    """How much faster than memory the last cache is, at most, less one."""
    feed: float
    """FLOPs per clock (of 16-bit types) at which half of a multiprocessor's matrix units wait for data."""
    arithmetic: dict[str, dict[str, float]]
    """By unit (``matrix``, ``vector``) and part: logarithm of the share of the sustained peak."""
    traffic: dict[str, float]
    """By part: logarithm of bytes moved over bytes counted."""
    layout_traffic: float
    """Of converting layouts for matrix units, likewise."""
    peaks: dict[str, Sustained]
    """By unit and dtype: ``matrix fp16`` (``bf16`` is the same), ``matrix tf32``, ``vector fp32``."""
    bandwidth: Sustained
    power: Power
    recurrent_step_seconds: float
    """From one time step of an RNN to the next, besides its arithmetic."""
    stacks: dict[str, dict[str, float]]
    """By software stack and rate: logarithm of the rate over that of the newest stack. ``host``: of the time
    of calls in that stack's years over today's."""
    default_stack: str
    roofline: dict[str, float]
    """By unit that computes most: logarithm of measured time over the bare roofline."""
    roofline_sd: float
    model_sd: float
    """Of a step on a well-known card: model by model."""
    coverage: dict[str, float]
    """By class of case: multiplies half the interval so that it covers what it says, card by card."""
    host: Host
    energy: Energy
    memory: Memory
    links: Links


@functools.cache
def load() -> Coefficients:
    """The coefficients that come with this version."""
    path = resources.files("outpace.prediction") / "coefficients.json"
    return msgspec.json.decode(path.read_bytes(), type=Coefficients)
