"""Writes the error tables of the predictions into docs/method.md, between its markers.

    python -m bench.validate            # some minutes; see bench/calibrate.py for what it needs
    python -m bench.validate untouched  # once, when the model is finished

What is left out of which fit stands in ``splits.toml``. Rivals' figures are the published ones.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench import calibrate, examples, fit, judging, tables
from bench.examples import Case
from bench.judging import Errors, Judged
from outpace.prediction import energy, memory, one_card, step
from outpace.prediction.coefficients import Coefficients
from outpace.prediction.options import Options
from outpace.units import MIB

DOCUMENT = Path(__file__).parent.parent / "docs" / "method.md"


class Table:
    """Lines of a table, collected as they are found."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def row(self, name: str, found: Errors, *more: str) -> None:
        """One set of rows."""
        figures = (
            f"{found.mean:6.1f} {found.median:6.1f} {found.p90:6.1f} {found.worst:6.0f} {found.bias:+6.1f}"
        )
        self.lines.append(f"{name:<46.46} {found.rows:5} {figures}  {' '.join(more)}".rstrip())
        print(self.lines[-1], file=sys.stderr, flush=True)

    def text(self, line: str) -> None:
        """A line as it is."""
        self.lines.append(line)
        print(line, file=sys.stderr, flush=True)


def of(found: Iterable[Judged]) -> Errors:
    """Errors of rows."""
    return judging.errors(one.error for one in found)


def card_of(case: Case) -> str:
    """The card of a row."""
    return case.row.card.name


def architecture_of(case: Case) -> str:
    """The architecture of its card."""
    return case.row.card.architecture


class Study:
    """The full fit, and what was predicted without each part of it."""

    def __init__(self) -> None:
        self.every = calibrate.everything()
        self.theta = fit.fit(self.every)
        self.full = fit.coefficients(self.theta)
        self._cards: dict[str, Coefficients] = {}

    def without_card(self, name: str) -> Coefficients:
        """A fit without all that was measured on one card."""
        if name not in self._cards:
            self._cards[name] = self.without(lambda example: calibrate.is_on(example, name))
        return self._cards[name]

    def card_out(self, cases: Sequence[Case]) -> list[Judged]:
        """Each case judged by a fit without its card."""
        return [judging.judge(case, self.without_card(card_of(case)), card_of(case)) for case in cases]

    def without(self, leaves: Callable[[fit.Example], bool]) -> Coefficients:
        """A fit without some examples."""
        return fit.coefficients(fit.fit(self.every, without=leaves, start=self.theta))

    def out(
        self, cases: Sequence[Case], group: Callable[[Case], str], leaves: Callable[[fit.Example, str], bool]
    ) -> list[Judged]:
        """Each case judged without its group."""
        return judging.leave_out(self.every, cases, group, leaves, self.theta)


def grouped(table: Table, found: Sequence[Judged], key: Callable[[Judged], str]) -> None:
    """A line for each group of rows."""
    groups: dict[str, list[Judged]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    for name in sorted(groups):
        table.row(f"    {name}", of(groups[name]))


def rival(table: Table, name: str, found: Sequence[Judged]) -> None:
    """The trivial rival on the same rows, and whether the gate holds."""
    trivial = judging.errors(judging.times_constant(found))
    ours = of(found)
    table.row(
        f"  {name}: roofline x constant",
        trivial,
        "gate holds" if ours.mean <= trivial.mean else "GATE BROKEN",
    )


def harness(study: Study, table: Table) -> list[Judged]:
    """ResNet-50 and BERT over some 25 cards."""
    cases = examples.cases("harness")
    found = study.card_out(cases)
    table.row("ResNet-50, BERT; card out", of(found), "goal 8 / 5.5, p90 16")
    rival(table, "card out", found)
    grouped(table, found, lambda one: f"{one.case.row.model}, {one.case.row.precision}")
    grouped(table, found, lambda one: one.left_out)
    apart = study.out(cases, architecture_of, lambda example, name: example.card.architecture == name)
    table.row("the same; architecture out", of(apart), "goal 10 / 7, p90 20")
    rival(table, "architecture out", apart)
    grouped(table, apart, lambda one: one.left_out)
    table.row("the same; card out, another model measured", with_one_measurement(study, cases), "goal 6 / 4")
    return [*found]


def with_one_measurement(study: Study, cases: Sequence[Case]) -> Errors:
    """Every row of a card in turn is the measurement; the other models in its precision and run are
    judged."""
    logs = []
    for name in sorted({card_of(case) for case in cases}):
        coefficients = study.without_card(name)
        rows = [case for case in cases if card_of(case) == name]
        for seen in rows:
            options = Options(stack=seen.row.stack if seen.row.stack in coefficients.stacks else None)
            correction = one_card.corrected(
                [(seen.trace, seen.row.seconds)], seen.row.card, options, coefficients
            )
            for case in rows:
                same = (case.row.system, case.row.precision) == (seen.row.system, seen.row.precision)
                if case.row.model != seen.row.model and same:
                    timed = one_card.timed(case.trace, case.row.card, options, coefficients, correction)
                    logs.append(math.log(timed.seconds / case.row.seconds))
    return judging.errors(logs)


def transformers(study: Study, table: Table) -> list[Judged]:
    """fp32 transformer steps."""
    cases = examples.cases("transformer_steps")
    found = study.card_out(cases)
    nvidia = [one for one in found if one.case.row.card.vendor == "nvidia"]
    table.row("fp32 transformer steps, NVIDIA; card out", of(nvidia), "goal 6 / 5, p90 12")
    rival(table, "card out", nvidia)
    grouped(table, found, lambda one: one.left_out)
    kept = {tables.NAMES[name] for name in tables.splits()["transformer_steps"]["one_fit"]}
    once = study.without(lambda example: example.card.name not in kept and "a100" in example.card.name)
    unseen = [case for case in cases if card_of(case) == "a100-pcie-80gb"]
    judged = [judging.judge(case, once, "one fit") for case in unseen]
    table.row("one fit (P4 P100 T4 V100 A100-40): A100-80", of(judged), "NeuSight 8.8 / 6.4, p90 17")
    for group in tables.splits()["transformer_steps"]["siblings"]:
        names = {tables.NAMES[name] for name in group}
        fitted = study.without(lambda example: "a100" in example.card.name)
        rows = [judging.judge(case, fitted, "A100") for case in cases if card_of(case) in names]
        table.row("every A100 out", of(rows))
    halves(study, table, cases)
    return found


def halves(study: Study, table: Table, cases: Sequence[Case]) -> None:
    """Forward and backward apart, the card left out."""
    logs: dict[str, list[float]] = {"forward": [], "backward": []}
    for name in sorted({card_of(case) for case in cases if case.row.card.vendor == "nvidia"}):
        coefficients = study.without_card(name)
        for case in cases:
            if card_of(case) != name or case.row.forward_seconds is None:
                continue
            forward = case.row.forward_seconds
            measured = {"forward": forward, "backward": case.row.seconds - forward}
            for phase, seconds in measured.items():
                operators = [one for one in case.example.operators if one.phase == phase]
                if operators and seconds > 0.001 * case.row.seconds:
                    found = step.of_operators(operators, case.row.card, coefficients)
                    logs[phase].append(math.log(found.kernels / seconds))
    for phase, values in logs.items():
        table.row(f"  {phase} apart, NVIDIA; card out", judging.errors(values))


def images(study: Study, table: Table) -> None:
    """Families of image models left out, in two layouts."""
    cases = examples.cases("image_models")
    folds = tables.splits()["image_models"]["folds"]

    def fold_of(case: Case) -> str:
        return str(zlib.crc32(case.row.family.encode()) % folds)

    fold_by_example = {id(case.example): fold_of(case) for case in cases}
    found = study.out(cases, fold_of, lambda example, fold: fold_by_example.get(id(example)) == fold)
    for layout, goal in (("nchw", "goal 7 / 5"), ("nhwc", "goal 10 / 6")):
        rows = [one for one in found if one.case.row.source.endswith(layout)]
        table.row(f"image models {layout}; families out", of(rows), goal)
        rival(table, f"{layout}, families out", rows)


def launches(study: Study, table: Table) -> None:
    """Torchvision at batch 12; the host is known from one model, the others are judged."""
    cases = examples.cases("launch_bound")
    found = []
    for name in sorted({card_of(case) for case in cases}):
        coefficients = study.without_card(name)
        for system in sorted({case.row.system for case in cases if card_of(case) == name}):
            rows = [case for case in cases if card_of(case) == name and case.row.system == system]
            known_from = next((case for case in rows if case.row.model == "resnet18"), rows[0])
            scale = host_scale(known_from, coefficients)
            found += [
                judging.judge(case, coefficients, name, scale) for case in rows if case is not known_from
            ]
    table.row("torchvision at batch 12; card out, host known", of(found), "goal 20")
    rival(table, "batch 12", found)
    grouped(table, found, lambda one: f"{one.left_out}, {one.case.row.precision}")


def host_scale(case: Case, coefficients: Coefficients) -> float:
    """The host's slowness that explains one measured step."""
    timed = examples.predicted(case, coefficients).step
    wanted = (case.row.seconds - case.example.waits) ** 2 - timed.kernels**2
    return math.sqrt(max(wanted, (0.2 * timed.host) ** 2)) / timed.host


def recurrent(study: Study, table: Table) -> None:
    """DeepBench's RNNs, one card left out."""
    raw = tables.recurrent()
    logs: dict[str, list[float]] = {}
    for name in sorted({card.name for _, card, _, _ in raw}):
        coefficients = study.without_card(name)
        rates = coefficients.stacks.get("deepbench", {})
        for operator, card, seconds, _ in raw:
            if card.name == name:
                found = step.of_operators([operator], card, coefficients, log_rates=rates)
                logs.setdefault(name, []).append(math.log(found.kernels / seconds))
    table.row(
        "RNN, LSTM, GRU operators; card out", judging.errors(itertools.chain(*logs.values())), "goal 25 / 15"
    )
    for name, values in logs.items():
        table.row(f"    {name}", judging.errors(values))


def speed_up(study: Study, table: Table) -> None:
    """V100 to A100 at matched batch in NVIDIA's own tables, which no fit has seen."""
    asked = tables.splits()["speed_up"]
    rows = [
        case
        for case in examples.cases("others")
        if case.row.model in asked["models"] and case.row.card.vector_flops_per_second  # not V100-SXM3
    ]
    logs = []
    for old in rows:
        for new in rows:
            same = (old.row.model, old.row.source.partition("#")[0], old.row.stack.partition(" (")[0]) == (
                new.row.model,
                new.row.source.partition("#")[0],
                new.row.stack.partition(" (")[0],
            )
            precisions = {(old.row.precision, new.row.precision)} & {
                ("fp16-amp", "fp16-amp"),
                ("fp32", "tf32"),
            }
            ratio = new.row.wanted.batch / old.row.wanted.batch
            near = 1 / asked["largest_batch_ratio"] < ratio < asked["largest_batch_ratio"]
            cards = asked["from"].lower() in card_of(old) and asked["to"].lower() in card_of(new)
            if same and precisions and near and cards:
                measured = old.row.seconds / new.row.seconds
                predicted = (
                    examples.predicted(old, study.full).seconds / examples.predicted(new, study.full).seconds
                )
                logs.append(math.log(predicted / measured))
    if logs:
        table.row("V100 to A100, ResNet-type, source out", judging.errors(logs), "goal 5")


def powers(study: Study, table: Table) -> None:
    """Mean power of a busy card and energy of a step, the card left out."""
    watts: list[float] = []
    joules: list[float] = []
    slower: list[float] = []
    rows = tables.energy()
    busy_share = tables.splits()["energy"]["busy_watts_share"]
    for name in sorted({row.card.name for row in rows}):
        fitted = calibrate.fitted_energy([row for row in rows if row.card.name != name], study.full)
        for row in rows:
            if row.card.name != name or row.watts < busy_share * row.limit_watts:
                continue
            found = calibrate.powered(row, study.full)
            whole = next(
                (
                    one.seconds
                    for one in rows
                    if (one.model, one.card.name, one.wanted.batch) == (row.model, name, row.wanted.batch)
                    and one.limit_watts == row.card.board_power_watts
                ),
                None,
            )
            if found is None or whole is None:
                continue
            busy, used = found
            drawn = energy.draw(used, busy, row.card, fitted, row.limit_watts)
            assert drawn is not None
            watts.append(math.log(drawn.watts / row.watts))
            slower.append(math.log(drawn.slowdown / (row.seconds / whole)))
            joules.append(watts[-1] + slower[-1])
    if watts:
        table.row("mean power of a busy card; card out", judging.errors(watts), "goal 10 / 6")
        table.row("slowdown under a power limit; card out", judging.errors(slower))
        table.row("energy of a step, its time at full power known", judging.errors(joules), "goal 15")


def memories(study: Study, table: Table) -> None:
    """Peaks that the driver showed in the harness, whose batches fill the cards: a bound, not the need."""
    noted = {}
    for row in tables.training(tables.splits()["harness"]["source"]):
        told = re.search(r"peak nvidia-smi mem (\d{4,}) MiB", row["notes"])
        if told:
            noted[row["source"].split("/")[-3], row["model"], row["precision"]] = int(told[1]) * MIB
    ratios, fitting = [], 0
    for case in examples.cases("harness"):
        shown = noted.get((case.row.system, case.row.model, case.row.precision))
        held = memory.footprint(
            case.trace, case.example.operators, "as written", case.row.card, study.full.memory
        )
        if shown is None or held is None:
            continue
        peak = memory.peak(held, study.full.memory)
        ratios.append(peak.mid / shown)
        fitting += memory.fits(peak, case.row.card) != "no"
    table.text(
        f"memory: {len(ratios)} trainings that ran, {fitting} predicted to fit; predicted peak over what the "
        f"driver showed, with cached blocks: {min(ratios):.2f} to {max(ratios):.2f}, "
        f"median {statistics.median(ratios):.2f}"
    )


def untouched(study: Study, table: Table) -> None:
    """What nobody looked at while the model was made."""
    wanted = tables.splits()["untouched"]
    for source in wanted["sources"]:
        rows = [case for case in examples.cases("others") if case.row.source == source]
        if rows:
            found = [judging.judge(case, study.full, case.row.model) for case in rows]
            table.row(f"untouched: {source}", of(found))
            rival(table, source, found)
    rows = list(examples.cases("untouched_images"))
    if rows:
        for layout in tables.splits()["image_models"]["layouts"]:
            found = [
                judging.judge(case, study.full, case.row.family)
                for case in rows
                if case.row.source.endswith(layout)
            ]
            table.row(f"untouched: image families, {layout}", of(found))
            rival(table, layout, found)


def intervals(table: Table, found: Sequence[Judged]) -> None:
    """Coverage of the 90 % intervals on cards left out, widened by what the other cards say."""
    covered = judging.coverage(found)
    table.text(
        f"90 % intervals, card out: {covered.rows:.0f} % of {len(found)} rows, worst card "
        f"{covered.worst_card:.0f} % ({covered.worst_name}), median factor {covered.factor:.2f}; "
        "goal 88 to 93 %, worst 75 %, factor 1.35"
    )
    names = sorted({card_of(one.case) for one in found})
    shares = []
    for name in names:
        others = [one for one in found if card_of(one.case) != name]
        widen = judging.widening(others)
        rows = [one for one in found if card_of(one.case) == name]
        inside = [abs(one.error) <= judging.Z90 * one.sd * widen.get(one.kind, 1.0) for one in rows]
        shares.append(f"{name} {100 * statistics.fmean(inside):.0f}")
    table.text("per card, %: " + ", ".join(shares))


_FIGURES = ("rows", "mean", "median", "p90", "worst", "bias")
HEADER = f"{'rows left out of the fit':<46} " + " ".join(f"{name:>6}" for name in _FIGURES)[1:]


def write(lines: Sequence[str], marker: str) -> None:
    """Put *lines* between the markers of the document."""
    begin, end = f"<!-- begin {marker} -->", f"<!-- end {marker} -->"
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    assert rest, f"no {begin} in {DOCUMENT}"
    DOCUMENT.write_text("\n".join([f"{before}{begin}", "", "```", *lines, "```", "", f"{end}{after}"]))


def main() -> None:
    """All tables, or the untouched sets alone."""
    study, table = Study(), Table()
    table.text(HEADER)
    if "untouched" in sys.argv[1:]:
        untouched(study, table)
        write(table.lines, "untouched")
        return
    found = harness(study, table)
    found += transformers(study, table)
    images(study, table)
    speed_up(study, table)
    launches(study, table)
    recurrent(study, table)
    powers(study, table)
    memories(study, table)
    intervals(table, found)
    write(table.lines, "errors of predictions")


if __name__ == "__main__":
    main()
