"""Results as a few aligned lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from outpace import stats, units
from outpace.records import Device, Run
from outpace.runs import Summary
from outpace.verbs.devices import Found


def run_result(run: Run) -> str:
    """The result of a training run, in the manner of hyperfine: few numbers, aligned."""
    lines = [f"{run.target} on {_device(run)}"]
    rows = [("steps", _steps(run)), ("time", _time(run))]
    if run.samples_per_second is not None:
        full = stats.full_batch(run.step_samples) or 0
        rows.append(
            (
                "speed",
                f"{units.per_second(run.samples_per_second, 'samples')} "
                f"({units.seconds(full / run.samples_per_second)} per step of {full})",
            )
        )
    elif run.samples and run.steps:
        rows.append(("speed", "too few steps for a steady state"))
    loss = _loss(run)
    if loss:
        rows.append(("loss", loss))
    rows += [(name, _metric(value)) for name, value in run.metrics.items() if name != "loss"]
    if run.peak_bytes is not None:
        where = "of the process" if run.peak_bytes_source == "process" else f"({run.peak_bytes_source})"
        rows.append(("memory", f"{units.byte_count(run.peak_bytes)} peak {where}"))
    if run.speedups:
        rows.append(("with", "; ".join(run.speedups.values())))
    width = max(len(name) for name, _ in rows)
    lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    lines += [f"note: {note}" for note in run.notes]
    return "\n".join(lines)


def run_line(run: Summary) -> str:
    """A run as one line of a list, within 80 columns for the usual names."""
    rate = units.per_second(run.samples_per_second, "samples") if run.samples_per_second else "-"
    when = run.started_at[:16].replace("T", " ")
    target = Path(run.target).name
    return f"{when}  {target:<20.20}  {run.state:<11} {run.steps:>7,} steps {rate:>17}  {run.device or '-'}"


def devices(found: Found) -> str:
    """What each framework sees, and what is known of it; the CPU once, since all see the same."""
    lines = []
    machine, answers = found.host, found.frameworks
    for answer in answers:
        lines.append(answer.framework + (f": {answer.why_not}" if answer.why_not else ""))
        for device in answer.devices:
            if device.id.startswith("cpu"):
                lines.append(f"  {device.id}")
                continue
            lines.append(f"  {device.id}  {device.name}" + (f", {device.driver}" if device.driver else ""))
            lines += [f"    {name:<7} {value}" for name, value in _facts(device)]
    extensions = ", ".join(machine.matrix_extensions) or "none known"
    lines += [
        f"cpu: {machine.cpu}",
        f"    cores   {machine.cores:g} (affinity and container quota)",
        f"    units   {extensions}",
    ]
    cpus = [device for answer in answers for device in answer.devices if device.id.startswith("cpu")]
    if cpus:
        lines += [f"    {name:<7} {value}" for name, value in _facts(cpus[0])]
    return "\n".join(lines)


def _facts(device: Device) -> Iterator[tuple[str, str]]:
    card = device.card or "unknown card"
    yield "card", f"{device.part} of {card}" if device.part else card
    if device.memory_total_bytes:
        total = units.byte_count(device.memory_total_bytes)
        free = device.memory_free_bytes
        yield "memory", f"{units.byte_count(free)} of {total} free" if free is not None else total
    fast = [dtype for dtype, works in device.dtypes.items() if works]
    slow = [dtype for dtype, works in device.dtypes.items() if not works]
    if device.dtypes:
        yield "types", ", ".join([*fast, *(f"no {dtype}" for dtype in slow)])
    yield "energy", device.energy_source or f"not measured: {device.energy_missing_because}"
    if device.uuid or device.pci_address:
        yield "is", " at ".join(filter(None, (device.uuid, device.pci_address)))


def _device(run: Run) -> str:
    if run.device is None:
        return f"{run.host.name} (which device was not seen)"
    if run.device == "cpu":
        return f"cpu ({run.host.cpu}, {run.host.cores:g} cores)"
    details = ", ".join(filter(None, (run.device_name, run.device_driver)))
    return f"{run.device} ({details})" if details else run.device


def _steps(run: Run) -> str:
    parts = [f"{run.steps:,}"]
    if run.samples is not None:
        parts.append(f"{run.samples:,} samples")
    if run.epochs:
        parts.append(f"{run.epochs} epoch{'s' if run.epochs > 1 else ''}")
    if run.skipped_steps:
        parts.append(f"{run.skipped_steps} skipped by loss scaling")
    return ", ".join(parts)


def _time(run: Run) -> str:
    if run.startup_seconds is None:
        return units.seconds(run.seconds)
    training = max(run.seconds - run.startup_seconds, 0.0)
    return f"{units.seconds(training)} after {units.seconds(run.startup_seconds)} of start-up"


def _loss(run: Run) -> str | None:
    """First to last; the last is the mean over the last twentieth of the steps."""
    if run.nonfinite_losses:
        return (
            f"not finite from step {run.nonfinite_losses[0] + 1:,} on ({len(run.nonfinite_losses):,} steps)"
        )
    values = [value for value in run.losses if value is not None]
    if not values:
        return None
    tail = values[-max(len(values) // 20, 1) :]
    return f"{units.significant(values[0])} → {units.significant(sum(tail) / len(tail))}"


def _metric(value: float | None) -> str:
    return "not finite" if value is None else units.significant(value, 4)
