"""What holds a training back, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from outpace import units
from outpace.limits import Limit
from outpace.records import Finding, Operator

#: Shares of the step time from which on something is worth a word.
DATA_SHARE = 0.2
#: A call that takes less than so many times the launch of an empty operator is mostly launch.
MOSTLY_LAUNCH = 4.0
MOSTLY = 0.5
#: A first step so many times as slow as the others was more than a step.
SLOW_FIRST_STEP = 5.0
SLOW_FIRST_SECONDS = 0.5
#: The host's own clock, read without waiting, is off by so much.
AHEAD = 1.5


@dataclass(frozen=True)
class Facts:
    """What was measured, as far as findings need it. Times in seconds, per step where not said otherwise."""

    step: float
    device: str
    synchronous: bool
    data: float | None = None
    waited: float = 0.0
    """By the host for the device, per window."""
    host_step: float | None = None
    """What a clock of the script sees that does not wait for the device."""
    host_clock: bool = False
    """The times are the host's."""
    window: float = 0.0
    first_step: float | None = None
    warm_up_steps: int = 0
    warm_up: float = 0.0
    settled: bool = True
    full: int | None = None
    partial: dict[int, int] = field(default_factory=dict)
    """Partial batches: samples to how many steps."""
    steps: int = 0
    slow_windows: int = 0
    windows: int = 0
    nonfinite: int = 0
    skipped: int = 0
    throttled: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Calls:
    """The operator calls of a step against the cost of a call."""

    calls: int
    small: int
    """Calls that need less than the cost of a call at the device's limit."""
    small_share: float | None
    """Share of those in the time of all calls, from the step that was timed one by one."""
    launch: float
    limit: float
    timed: float | None = None
    """Seconds of all calls in that step."""

    def bound(self, step: float) -> bool:
        """Whether a step of so many seconds is mostly spent on calls that are smaller than a call's cost."""
        if self.limit >= MOSTLY * step:
            return False
        if self.small_share is not None and self.small_share >= MOSTLY:
            return True
        mostly_small = self.small >= MOSTLY * self.calls
        return mostly_small and step / self.calls < 2 * MOSTLY_LAUNCH * self.launch


def calls_of(operators: Sequence[Operator], limits: Sequence[Limit], launch: float | None) -> Calls | None:
    """How the calls of a step compare to what a call costs; ``None`` where that is not known."""
    if not launch or not operators:
        return None
    pairs = list(zip(operators, limits, strict=True))
    tiny = [one for one, limit in pairs if limit.seconds < one.count * launch]
    small = [one for one, limit in pairs if is_small(one, limit, one.seconds, launch)]
    timed = sum(one.seconds or 0.0 for one in operators)
    return Calls(
        calls=sum(one.count for one in operators),
        small=sum(one.count for one in tiny),
        small_share=sum(one.seconds or 0.0 for one in small) / timed if timed else None,
        launch=launch,
        limit=sum(limit.seconds for limit in limits),
        timed=timed or None,
    )


def is_small(operator: Operator, limit: Limit, seconds: float | None, launch: float) -> bool:
    """Whether the calls of *operator* are mostly the cost of calling, by their limit and their time."""
    calls = operator.count * launch
    return limit.seconds < calls and (seconds is None or seconds < MOSTLY_LAUNCH * calls)


def bound_by(facts: Facts, calls: Calls | None) -> str | None:
    """``data``, ``host`` or ``device``: what a step mostly waits for; ``None`` where it cannot be told."""
    if facts.data is not None and facts.data >= MOSTLY * facts.step:
        return "data"
    if not facts.synchronous and facts.waited > MOSTLY * facts.step:
        return "device"  # the host is ahead, so it cannot be what holds
    if calls is None:
        return None
    if calls.bound(facts.step) or outside(facts, calls) >= MOSTLY * facts.step:
        return "host"
    return "device" if facts.synchronous or calls.limit >= MOSTLY * facts.step else "host"


def outside(facts: Facts, calls: Calls | None) -> float:
    """Seconds of a step that pass neither in operators nor waiting for data; 0 where that is not known."""
    if calls is None or calls.timed is None:
        return 0.0
    return max(facts.step - calls.timed - (facts.data or 0.0), 0.0)


def findings(facts: Facts, calls: Calls | None) -> list[Finding]:
    """Everything worth a word, the weightiest first."""
    script = _script(facts, calls)
    launches = bound_by(facts, calls) == "host" and (calls is None or calls.bound(facts.step)) and not script
    sentences = (
        ("data", _data(facts)),
        ("launches", _launches(facts, calls) if launches else None),
        ("script", script),
        ("ahead", _ahead(facts)),
        ("compilation", _compilation(facts)),
        ("unsteady", _unsteady(facts)),
        ("throttling", _throttling(facts)),
        ("partial batches", _partial(facts)),
        ("loss", _loss(facts)),
    )
    return [Finding(what=what, sentence=sentence) for what, sentence in sentences if sentence]


def _data(facts: Facts) -> str | None:
    if facts.data is None or facts.data < DATA_SHARE * facts.step:
        return None
    share = min(facts.data / facts.step, 1.0)
    return (
        f"{share:.0%} of each step ({units.seconds(facts.data)}) is spent waiting for the next batch: "
        f"the data loading is the limit, not the {_what(facts.device)}"
        if share >= MOSTLY
        else f"{share:.0%} of each step ({units.seconds(facts.data)}) is spent waiting for the next batch"
    )


def _launches(facts: Facts, calls: Calls | None) -> str | None:
    if calls is None:
        return "the device waits for the host: the host is the limit, not the card"
    return (
        f"each step makes {calls.calls:,} operator calls of {units.seconds(facts.step / calls.calls)} on "
        f"average; {calls.small:,} of them need less than the {units.seconds(calls.launch)} that a call "
        f"costs: the host is the limit, not the {_what(facts.device)}"
    )


def _script(facts: Facts, calls: Calls | None) -> str | None:
    seconds = outside(facts, calls)
    calling = calls.calls * calls.launch if calls else 0.0
    if seconds - calling < MOSTLY * facts.step:
        return None  # what a call costs passes partly outside of the operator that is called
    return (
        f"{seconds / facts.step:.0%} of each step ({units.seconds(seconds)}) passes outside of operators: in "
        f"the script's own Python, or waiting; the {_what(facts.device)} is not the limit"
    )


def _ahead(facts: Facts) -> str | None:
    if facts.host_clock and not facts.synchronous:
        return (
            "the training ended before the device was waited for: the step time is the host's, and the "
            "device may need longer"
        )
    if facts.host_step is None or facts.step < AHEAD * facts.host_step:
        return None
    return (
        f"the device computes behind the script: a clock in the script that does not wait for it sees "
        f"{units.seconds(facts.host_step)} per step, and a step takes {units.seconds(facts.step)}"
    )


def _compilation(facts: Facts) -> str | None:
    first = facts.first_step
    if first is None or first < max(SLOW_FIRST_STEP * facts.step, SLOW_FIRST_SECONDS):
        return None
    return (
        f"the first step took {units.seconds(first)}, {first / facts.step:,.0f} times a later one "
        f"(compilation, autotuning, caches); {facts.warm_up_steps:,} steps of warm-up "
        f"({units.seconds(facts.warm_up)}) are not in the rate"
    )


def _unsteady(facts: Facts) -> str | None:
    if not facts.settled:
        return "the pace never became steady; the figures are of the steps that were seen"
    if facts.slow_windows:
        return (
            f"{facts.slow_windows} of {facts.windows} windows took more than 1.5 times the median: "
            "something else uses this machine, or the script does more in some steps"
        )
    return None


def _throttling(facts: Facts) -> str | None:
    if not facts.throttled:
        return None
    reasons = ", ".join(f"{reason} ({share:.0%} of the time)" for reason, share in facts.throttled.items())
    return f"the device was held back: {reasons}"


def _partial(facts: Facts) -> str | None:
    if not facts.partial or not facts.full:
        return None
    count = sum(facts.partial.values())
    sizes = ", ".join(f"{size:,}" for size in sorted(facts.partial)[:3])
    return (
        f"{count:,} of {facts.steps:,} steps seen had a partial batch ({sizes} instead of {facts.full:,} "
        "samples): left out of the step time; a rate of steps x batch would count them as full"
    )


def _loss(facts: Facts) -> str | None:
    parts = []
    if facts.nonfinite:
        parts.append(f"the loss was not finite in {facts.nonfinite:,} steps")
    if facts.skipped:
        parts.append(f"loss scaling skipped {facts.skipped:,} optimizer steps")
    return " and ".join(parts) or None


def _what(device: str) -> str:
    return "CPU" if device == "cpu" else "card"
