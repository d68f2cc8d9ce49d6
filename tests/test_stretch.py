"""A script that is stopped after so much training."""

from __future__ import annotations

import pytest

from outpace import protocol
from outpace.stretch import Stretch


class Ground:
    def __init__(self) -> None:
        self.stopping = False
        self.seconds = 0.0
        self.events: list[protocol.Event] = []

    def now(self) -> float:
        return self.seconds

    def emit(self, event: protocol.Event) -> None:
        self.events.append(event)


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        (protocol.Stretch(steps=4), 4),
        (protocol.Stretch(seconds=3.0), 6),
        (protocol.Stretch(steps=9, seconds=2.0), 4),
        (protocol.Stretch(), 20),
    ],
)
def test_it_ends_after_the_steps_or_the_seconds(plan: protocol.Stretch, steps: int) -> None:
    ground = Ground()
    ground.seconds = 7.0
    stretch = Stretch(plan, ground)
    stretch.begin()
    taken = 0
    while taken < 20 and not ground.stopping:
        ground.seconds += 0.5
        stretch.pause()
        stretch.stepped(interrupted=True)
        taken += 1
    assert taken == steps
    stretch.stepped()
    stretch.finish()
    assert len(ground.events) == (1 if plan.steps or plan.seconds else 0)
