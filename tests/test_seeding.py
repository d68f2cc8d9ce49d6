"""Seeds from outside."""

from __future__ import annotations

import subprocess
import sys

import pytest

DRAWS = """
import random
from outpace import seeding
seeding.when_imported({seed}, shift={shift})
import numpy, torch
random.seed(5); numpy.random.seed(5); torch.manual_seed(5)
print(random.random(), numpy.random.rand(), torch.rand(()).item(), numpy.random.default_rng(5).random())
"""


def draws(seed: int | None, *, shift: bool) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", DRAWS.format(seed=seed, shift=shift)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_the_scripts_own_seeds_win_unless_they_are_shifted() -> None:
    own = draws(None, shift=False)
    assert draws(3, shift=False) == own
    assert draws(0, shift=True) == own
    shifted = draws(3, shift=True)
    assert all(one != two for one, two in zip(own, shifted, strict=True))
    assert draws(3, shift=True) == shifted
