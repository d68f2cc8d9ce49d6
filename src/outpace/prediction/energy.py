"""The power of a board while it trains, and what a power limit does to it.

Watts = limit x (idle + busy + what arithmetic and traffic add, each by how much of the datasheet's rate is
used). Where
that is above the power limit the clock falls: power goes with f V^2, and V falls with f down to a floor, so
a mild limit costs little time and a tight one much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from outpace.errors import UsageError
from outpace.prediction.coefficients import Energy
from outpace.records import Card


class Draw(NamedTuple):
    """Mean power of a card, and how much longer the step takes because of the limit."""

    watts: float
    slowdown: float


def draw(
    used: Mapping[str, float], busy: float, card: Card, coefficients: Energy, limit_watts: float | None
) -> Draw | None:
    """What *card* draws; ``None`` where its board power is not known.

    Args:
        used: share of the datasheet's rate over the step: ``matrix``, ``vector``, ``memory``.
        busy: share of the time in which kernels run at all.
        limit_watts: a power limit below that of the board.
    """
    board = card.board_power_watts
    if not board:
        return None
    dynamic = busy * coefficients.busy + sum(
        getattr(coefficients, name) * used.get(name, 0.0) for name in ("matrix", "vector", "memory")
    )
    idle, demand = coefficients.idle * board, dynamic * board
    limit = board if limit_watts is None else min(limit_watts, board)
    room = max(limit * coefficients.regulated - idle, 0.02 * board)
    if demand <= room:
        return Draw(idle + demand, 1.0)
    clock = clock_at(room / demand, coefficients.voltage_floor)
    return Draw(idle + room, 1.0 + busy * (1.0 / clock - 1.0))


def clock_at(share: float, floor: float) -> float:
    """The clock, as a share, at which dynamic power is so small a *share*: f^3, below the *floor* of V with
    f."""
    return share ** (1 / 3) if share >= floor**3 else share / floor**2


def check_limit(card: Card, limit_watts: float) -> None:
    """That the card can be limited to so many watts.

    Raises:
        UsageError: it cannot.
    """
    low = (card.board_power_range_watts or (None, None))[0] or 0.3 * (card.board_power_watts or 0.0)
    if limit_watts <= 0 or limit_watts < low:
        raise UsageError(
            f"{card.title} cannot be limited to {limit_watts:g} W",
            f"at least {low:.0f} W" if low else "a positive number of watts",
        )
