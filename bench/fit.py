"""Fits the coefficients: maximum a posteriori, by Gauss-Newton on the logarithms of measured times.

Everything is additive in logarithms (share of the peak, share of the bandwidth, traffic), so the derivative
of a step's time is the share of the step that depends on each; `scipy.optimize.least_squares` does the rest.
Needs NumPy and SciPy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares

from bench import priors
from outpace.prediction import hardware, launches, parts, step
from outpace.prediction.coefficients import Coefficients, Energy, Host, Links, Memory, Power, Sustained
from outpace.prediction.parts import Part
from outpace.records import Card, Operator

Theta = dict[tuple[str, ...], float]
Array = np.ndarray[Any, np.dtype[np.float64]]
_SHARPNESS = step.SHARPNESS
CLASSES = launches.CLASSES
NEWEST = "pytorch 2"
#: Which stacks each rate is told for; of others the difference to these is estimated.
REFERENCE = {"vector fp32": ("pytorch 2",), "matrix fp32": ("pytorch 2",), "bandwidth": ("pytorch 2",)}
_MATRIX_REFERENCE = ("pytorch 2", "pytorch 1.13", "pytorch 1.12")


class Example(NamedTuple):
    """Something that was timed: a step, or one operator."""

    operators: Sequence[Operator]
    card: Card
    seconds: float
    stack: str
    sd: float
    """Of the logarithm: noise of the label and what the model cannot know."""
    floor: str | None = None
    """Single operators: whose launch latency the time includes; estimated and thrown away."""
    system: str = ""
    """Whose host it is."""
    waits: float = 0.0
    """Seconds that are no work of host or kernels: copying a batch over."""


class _Names:
    """Parameters by name, with their priors."""

    def __init__(self) -> None:
        self.index: dict[tuple[str, ...], int] = {}
        self.means: list[float] = []
        self.sds: list[float] = []

    def of(self, name: tuple[str, ...], mean: float, sd: float) -> int:
        if name not in self.index:
            self.index[name] = len(self.means)
            self.means.append(mean)
            self.sds.append(sd)
        return self.index[name]

    def peak(self, key: str, card: Card) -> tuple[int, int, int]:
        mean, sd = priors.PEAKS.get(key, priors.PEAKS["vector fp32"])
        return (
            self.of(("peak", key), mean, sd),
            self.of(("peak", key, "architecture", card.architecture), 0.0, priors.ARCHITECTURE_SD),
            self.of(("peak", key, "card", card.name), 0.0, priors.CARD_SD),
        )

    def stack(self, stack: str, key: str) -> int:
        """Of a rate with another stack than the one that it is told for; -1: the same."""
        if stack in REFERENCE.get(key, _MATRIX_REFERENCE):
            return -1
        return self.of(
            ("stack", stack, key), 0.0, priors.STACK_SD if key != "bandwidth" else priors.STACK_SD / 3
        )

    def bandwidth(self, card: Card) -> tuple[int, int, int]:
        mean, sd = priors.BANDWIDTH
        return (
            self.of(("bandwidth",), mean, sd),
            self.of(("bandwidth", "architecture", card.architecture), 0.0, priors.BANDWIDTH_ARCHITECTURE_SD),
            self.of(("bandwidth", "card", card.name), 0.0, priors.BANDWIDTH_CARD_SD),
        )


class Problem:
    """Examples as arrays: one row per part."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self.names = _Names()
        self.power = [
            self.names.of(("power", name), *priors.POWER[name])
            for name in ("exponent", "log watts", "process")
        ]
        self.feed = self.names.of(("feed",), *priors.FEED)
        self.cards: list[Card] = []
        self._card_index: dict[str, int] = {}
        rows: list[tuple[float, ...]] = []
        columns: list[tuple[int, ...]] = []
        labels: list[tuple[float, float, int, tuple[int, dict[str, int]]]] = []
        for number, example in enumerate(examples):
            floor = -1
            if example.floor is not None:
                floor = self.names.of(("floor", example.floor), math.log(2e-5), 0.7)
            labels.append((math.log(example.seconds - example.waits), example.sd, floor, self._host(example)))
            for operator in example.operators:
                for part in parts.of_operator(operator, example.card):
                    self._add(rows, columns, number, part, operator, example)
        self.values = np.array(rows)
        self.columns = np.array(columns, dtype=np.int64)
        self.log_seconds, self.sds = (np.array([one[place] for one in labels]) for place in (0, 1))
        self.floors = np.array([one[2] for one in labels])
        self.classes = [
            self.names.of(("host", name), math.log(getattr(HOST, name)), priors.HOST_CLASS_SD)
            for name in CLASSES
        ]
        self.calls = np.array([[one[3][1].get(name, 0) for name in CLASSES] for one in labels], dtype=float)
        self.systems = np.array([one[3][0] for one in labels])
        self.means, self.prior_sds = np.array(self.names.means), np.array(self.names.sds)
        self._power_facts = np.array([_power_facts(card) for card in self.cards])

    def _host(self, example: Example) -> tuple[int, dict[str, int]]:
        """The parameter of its system, and its calls by class."""
        system = self.names.of(("system", example.system), older(example.stack), priors.HOST["sd"])
        if example.floor is not None:
            return system, {}
        calls = Counter[str]()
        for operator in example.operators:
            calls[launches.class_of(operator)] += operator.count
        return system, dict(calls)

    def _add(
        self,
        rows: list[tuple[float, ...]],
        columns: list[tuple[int, ...]],
        number: int,
        part: Part,
        operator: Operator,
        example: Example,
    ) -> None:
        card, in_step = example.card, example.floor is None
        if card.name not in self._card_index:
            self._card_index[card.name] = len(self.cards)
            self.cards.append(card)
        key = hardware.key_of(part.unit, part.dtype)
        if key not in priors.PEAKS:
            key = "vector fp32"
        rate = hardware.datasheet_peak(card, part.unit, part.dtype)
        compute = part.flops * part.waste / rate if rate and part.flops else 0.0
        assert card.memory_bandwidth_bytes_per_second is not None
        cached = hardware.cache_factor(card, part.bytes, priors.CACHE_BOOST)
        memory = part.bytes / card.memory_bandwidth_bytes_per_second / cached
        recurs = part.name.startswith("rnn")
        launch = 1.0 if recurs else HOST.kernel_seconds if in_step else 0.0
        launches_as = self.names.of(("recurrent step",), *priors.RECURRENT_STEP) if recurs else -1
        table = priors.ARITHMETIC[part.unit]
        arithmetic = self.names.of(("arithmetic", part.unit, part.name), *table.get(part.name, (0.0, 0.02)))
        traffic = self.names.of(("traffic", part.name), *priors.TRAFFIC.get(part.name, (0.0, 0.2)))
        peak, bandwidth = self.names.peak(key, card), self.names.bandwidth(card)
        places = (
            self._card_index[card.name],
            self.names.stack(example.stack, key),
            self.names.stack(example.stack, "bandwidth"),
            launches_as,
        )
        per_clock = hardware.flops_per_clock(card, part.unit, part.dtype) or 0.0
        rows.append((number, part.times, compute, memory, launch, per_clock))
        columns.append((arithmetic, *peak, traffic, *bandwidth, *places))
        moved = parts.converted_bytes(operator, part.unit)
        if moved:
            shared = 2 if operator.attributes.get("gradients") == "both" else 1
            layout = self.names.of(("layout",), *priors.LAYOUT_TRAFFIC)
            memory = moved / shared / card.memory_bandwidth_bytes_per_second
            rows.append((number, part.times, 0.0, memory, 0.0, 0.0))
            columns.append((arithmetic, *peak, layout, *bandwidth, *places))

    def _powered(self, theta: Array) -> tuple[Array, Array]:
        """Power term of each card, and its derivatives by the three power parameters."""
        exponent, log_watts, process = theta[self.power]
        log_ratio = self._power_facts[:, 0] - log_watts - process * self._power_facts[:, 1]
        known = self._power_facts[:, 2]
        hinge = np.log1p(np.exp(-4 * log_ratio)) / 4
        slope = exponent / (1 + np.exp(4 * log_ratio))  # by the log of the ratio
        derivatives = np.stack([-hinge, -slope, -slope * self._power_facts[:, 1]], axis=1)
        return -exponent * hinge * known, derivatives * known[:, None]

    def predicted(self, theta: Array, *, derivatives: bool) -> tuple[Array, Array | None]:
        """Logarithm of each example's seconds, and its derivatives."""
        number = self.values[:, 0].astype(np.int64)
        count, compute, memory, launch, per_clock = self.values[:, 1:].T
        c = self.columns
        powered, by_power = self._powered(theta)
        padded = np.append(theta, 0.0)  # the last is for "none": index -1
        waits = per_clock / np.exp(theta[self.feed])
        with np.errstate(divide="ignore"):
            share = theta[c[:, 1:4]].sum(axis=1) + powered[c[:, 8]] - np.log1p(waits)
            over = np.log1p(np.exp(hardware.CAP_SHARPNESS * share)) / hardware.CAP_SHARPNESS
            log_compute = np.log(compute) - theta[c[:, 0]] - (share - over) - padded[c[:, 9]]
            log_memory = np.log(memory) + theta[c[:, 4]] - theta[c[:, 5:8]].sum(axis=1) - padded[c[:, 10]]
        p = priors.SMOOTHNESS
        both = np.logaddexp(p * log_compute, p * log_memory)
        work = count * np.exp(both / p)
        computes = np.exp(p * log_compute - both)
        computes[~np.isfinite(computes)] = 0.0
        size = len(self.log_seconds)
        launching = count * launch * np.exp(padded[c[:, 11]])
        kernels = np.bincount(number, work + launching, size)
        floors = np.where(self.floors >= 0, np.exp(theta[np.maximum(self.floors, 0)]), 0.0)
        kernels = kernels + floors
        by_class = self.calls * np.exp(theta[self.classes]) * np.exp(theta[self.systems])[:, None]
        hosts = by_class.sum(axis=1)
        total = (kernels**_SHARPNESS + hosts**_SHARPNESS) ** (1 / _SHARPNESS)
        on_card = (kernels / total) ** _SHARPNESS
        log_total = np.log(total)
        if not derivatives:
            return log_total, None
        width = len(theta)
        scale = work / kernels[number] * on_card[number]
        by_compute, by_memory = scale * computes, scale * (1 - computes)
        by_rate = by_compute / (1 + np.exp(hardware.CAP_SHARPNESS * share))
        jacobian = np.zeros(size * width)
        for column, weight in [
            (c[:, 0], -by_compute),
            *((c[:, place], -by_rate) for place in (1, 2, 3)),
            (c[:, 4], by_memory),
            *((c[:, place], -by_memory) for place in (5, 6, 7)),
        ]:
            jacobian += np.bincount(number * width + column, weight, size * width)
        by_step = launching / kernels[number] * on_card[number]
        for place, weight in ((9, -by_compute), (10, -by_memory), (11, by_step)):
            there = c[:, place] >= 0
            jacobian += np.bincount((number * width + c[:, place])[there], weight[there], size * width)
        for place, parameter in enumerate(self.power):
            weight = -by_rate * by_power[c[:, 8], place]
            jacobian += np.bincount(number * width + parameter, weight, size * width)
        weight = by_rate * -waits / (1 + waits)
        jacobian += np.bincount(number * width + self.feed, weight, size * width)
        matrix: Any = jacobian.reshape(size, width)
        every = np.arange(size)
        inside = self.floors >= 0
        matrix[every[inside], self.floors[inside]] += (floors / kernels * on_card)[inside]
        with np.errstate(invalid="ignore"):
            of_class = np.nan_to_num(by_class / hosts[:, None]) * (1 - on_card)[:, None]
        matrix[:, self.classes] += of_class
        matrix[every, self.systems] += of_class.sum(axis=1)
        return log_total, matrix

    def solve(self, start: dict[tuple[str, ...], float] | None = None) -> dict[tuple[str, ...], float]:
        """The parameters that explain the examples best without leaving their priors for little."""
        theta = self.means.copy()
        for name, value in (start or {}).items():
            if name in self.names.index:
                theta[self.names.index[name]] = value

        def residuals(theta: Array) -> Array:
            found, _ = self.predicted(theta, derivatives=False)
            own = _robust((found - self.log_seconds) / self.sds)
            return np.concatenate([own, (theta - self.means) / self.prior_sds])

        def jacobian(theta: Array) -> Array:
            found, by = self.predicted(theta, derivatives=True)
            assert by is not None
            raw = (found - self.log_seconds) / self.sds
            own = by / self.sds[:, None] * _robust_slope(raw)[:, None]
            return np.concatenate([own, np.diag(1 / self.prior_sds)])

        solved = least_squares(
            residuals, theta, jac=jacobian, max_nfev=10 if start else 25, xtol=1e-4, ftol=1e-5
        )
        return {name: float(solved.x[index]) for name, index in self.names.index.items()}


def _robust(raw: Array) -> Array:
    """Signed square root of the Cauchy-like loss 2 c^2 log(1 + r^2 / 2 c^2), c = 3: outliers pull less."""
    found: Array = np.sign(raw) * np.sqrt(18 * np.log1p(raw**2 / 18))
    return found


def _robust_slope(raw: Array) -> Array:
    small = np.abs(raw) < 1e-6
    safe = np.where(small, 1.0, raw)
    return np.where(small, 1.0, safe / (1 + safe**2 / 18) / np.where(small, 1.0, _robust(safe)))


def _power_facts(card: Card) -> tuple[float, float, float]:
    """(log of watts per 1000 lanes and GHz, log of the process over 12 nm, whether both are known)."""
    ratio = hardware.power_ratio(card, Power(exponent=1.0, watts=1.0, process=0.0))
    if ratio is None:
        return 0.0, 0.0, 0.0
    return math.log(ratio), math.log((card.process_nm or 12.0) / 12.0), 1.0


HOST = Host(**priors.HOST)
#: Cards that are left out differ from what is expected by so much more than the priors, which hold
#: coefficients back, would have it.
SPREAD = 1.5


def coefficients(theta: dict[tuple[str, ...], float], **changes: Any) -> Coefficients:
    """The parameters as the product reads them; what was not fitted is its prior."""
    arithmetic = {
        unit: {name: prior[0] for name, prior in table.items()} for unit, table in priors.ARITHMETIC.items()
    }
    traffic = {name: prior[0] for name, prior in priors.TRAFFIC.items()}
    for name, value in theta.items():
        if name[0] == "arithmetic":
            arithmetic[name[1]][name[2]] = value
        elif name[0] == "traffic":
            traffic[name[1]] = value
    stacks: dict[str, dict[str, float]] = {NEWEST: {}}
    for name, value in theta.items():
        if name[0] == "stack":
            stacks.setdefault(name[1], {})[name[2]] = value
    for stack, rates in stacks.items():
        if older(stack):
            rates["host"] = older(stack)
    fields: dict[str, Any] = {
        "made_by": "bench/calibrate.py",
        "made_from": [],
        "smoothness": priors.SMOOTHNESS,
        "cache_boost": priors.CACHE_BOOST,
        "feed": math.exp(theta.get(("feed",), priors.FEED[0])),
        "arithmetic": arithmetic,
        "traffic": traffic,
        "layout_traffic": theta.get(("layout",), priors.LAYOUT_TRAFFIC[0]),
        "peaks": {
            key: _sustained(theta, ("peak", key), prior, priors.ARCHITECTURE_SD, priors.CARD_SD)
            for key, prior in priors.PEAKS.items()
        },
        "bandwidth": _sustained(
            theta,
            ("bandwidth",),
            priors.BANDWIDTH,
            priors.BANDWIDTH_ARCHITECTURE_SD,
            priors.BANDWIDTH_CARD_SD,
        ),
        "power": Power(
            exponent=theta.get(("power", "exponent"), priors.POWER["exponent"][0]),
            watts=math.exp(theta.get(("power", "log watts"), priors.POWER["log watts"][0])),
            process=theta.get(("power", "process"), priors.POWER["process"][0]),
        ),
        "recurrent_step_seconds": math.exp(theta.get(("recurrent step",), priors.RECURRENT_STEP[0])),
        "stacks": stacks,
        "default_stack": NEWEST,
        "roofline": {"matrix": 0.6, "vector": 0.4},
        "roofline_sd": 0.35,
        "model_sd": 0.07,
        "coverage": {},
        "host": _host(theta),
        "energy": Energy(**priors.ENERGY),
        "memory": Memory(**priors.MEMORY),
        "links": Links(**priors.LINKS),
    }
    return Coefficients(**{**fields, **changes})


def older(stack: str) -> float:
    """Logarithm of how much slower hosts of a stack's years are than today's."""
    return 0.0 if stack in _MATRIX_REFERENCE else priors.OLDER_HOST


def _host(theta: dict[tuple[str, ...], float]) -> Host:
    fitted = {name[1]: math.exp(value) for name, value in theta.items() if name[0] == "host"}
    return Host(**{**priors.HOST, **fitted})


def _sustained(
    theta: dict[tuple[str, ...], float],
    prefix: tuple[str, ...],
    prior: tuple[float, float],
    architecture_sd: float,
    card_sd: float,
) -> Sustained:
    from outpace.cards import load

    size = len(prefix)
    below = {
        name[size:]: value for name, value in theta.items() if name[:size] == prefix and len(name) > size
    }
    cards = {name[1]: value for name, value in below.items() if name[0] == "card"}
    table = load()
    vendors = sorted({table[name].vendor for name in cards if name in table})
    return Sustained(
        mean=theta.get(prefix, prior[0]),
        architectures={name[1]: value for name, value in below.items() if name[0] == "architecture"},
        cards={name: value for name, value in cards.items() if name in table},
        vendors=vendors,
        sd={
            "architecture": SPREAD * architecture_sd,
            "card": SPREAD * card_sd,
            "seen": SPREAD * card_sd / 3,
        },
    )


def fit(
    examples: Sequence[Example],
    *,
    without: Callable[[Example], bool] = lambda _: False,
    start: dict[tuple[str, ...], float] | None = None,
) -> dict[tuple[str, ...], float]:
    """The parameters from all *examples* but those left out."""
    return Problem(example for example in examples if not without(example)).solve(start)
