"""Several equal cards that train together: the gradients' all-reduce against the backward pass.

A ring moves 2 (n - 1) / n times the gradients over each card's link (Patarasuk and Yuan 2009); frameworks
start it while the backward pass still runs, so only what is not hidden costs time (Li et al. 2020, PyTorch
DDP).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from outpace.errors import UsageError
from outpace.prediction.coefficients import Links
from outpace.records import Card

#: Cards of one node; beyond that the network between nodes is the link.
CARDS_PER_NODE = 8
#: One 200 Gbit/s adapter per card, the usual of the A100 and H100 generations.
NODE_BYTES_PER_SECOND = 25e9
_PCIE_BYTES_PER_SECOND = 16e9


class Exchange(NamedTuple):
    """What the all-reduce of a step costs."""

    seconds: float
    exposed: float
    link: str


def split(text: str) -> tuple[int, str]:
    """``8xh100-sxm-80gb`` as 8 and the card's name.

    Raises:
        UsageError: not a number of cards that can be.
    """
    found = re.match(r"^(\d+)\s*[x*×]\s*(?=\D)(.+)$", text.strip())  # noqa: RUF001 - people write it
    if not found:
        return 1, text
    number = int(found[1])
    if not 1 <= number <= 4096:
        raise UsageError(f"'{text}': {number} cards", "between 1 and 4096")
    return number, found[2]


def exchange(
    card: Card, cards: int, gradient_bytes: float, backward_seconds: float, links: Links
) -> Exchange:
    """The all-reduce of *gradient_bytes* over *cards*, and what of it the backward pass does not hide."""
    if cards == 1:
        return Exchange(0.0, 0.0, "none")
    within = card.peer_link_bytes_per_second
    # vendors state both directions together
    one_way = within / 2 if within else (card.host_link_bytes_per_second or _PCIE_BYTES_PER_SECOND)
    name = card.peer_link or card.host_link or "PCIe"
    if cards > CARDS_PER_NODE and one_way > NODE_BYTES_PER_SECOND:
        one_way, name = NODE_BYTES_PER_SECOND, "200 Gbit/s network"
    moved = 2 * (cards - 1) / cards * gradient_bytes
    seconds = moved / (one_way * links.efficiency) + 2 * (cards - 1) * links.latency_seconds
    hidden = min(seconds * links.overlap, backward_seconds * links.overlap)
    return Exchange(seconds, seconds - hidden, name)
