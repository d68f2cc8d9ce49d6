"""The power of a board while it trains, and what a power limit does to it.

Watts = limit x (idle + what each kind of unit adds, by the share of the step that it works), never above the limit;
where the demand is above, the clock falls until it is met.
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
    shares: Mapping[str, float], card: Card, coefficients: Energy, limit_watts: float | None
) -> Draw | None:
    """What *card* draws in a step with these *shares* of limits; ``None`` where its board power is not known.

    Args:
        limit_watts: a power limit below that of the board.
    """
    board = card.board_power_watts
    if not board:
        return None
    dynamic = (
        coefficients.matrix * shares.get("matrix units", 0.0)
        + coefficients.vector * shares.get("vector units", 0.0)
        + coefficients.memory * shares.get("memory bandwidth", 0.0)
        + coefficients.waiting * (shares.get("host launches", 0.0) + shares.get("interconnect", 0.0))
    )
    idle = coefficients.idle * board
    demand = dynamic * board
    limit = board if limit_watts is None else min(limit_watts, board)
    room = max(limit - idle, 0.05 * limit)
    if demand <= room:
        return Draw(idle + demand, 1.0)
    busy = 1.0 - shares.get("host launches", 0.0) - shares.get("interconnect", 0.0)
    slowdown = 1.0 + busy * ((demand / room) ** coefficients.throttle - 1.0)
    return Draw(limit, slowdown)


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
