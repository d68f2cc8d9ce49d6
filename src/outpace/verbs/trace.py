"""The verb: the operators of one training step."""

from __future__ import annotations

import msgspec

from outpace import measured, protocol
from outpace.errors import OutpaceError
from outpace.records import Trace
from outpace.verbs import measure, running
from outpace.verbs.running import Silent, View


def trace(
    target: str,
    args: list[str] | None = None,
    *,
    device: str = "auto",
    fake: bool = False,
    as_on_card: bool = False,
    seed: int | None = None,
    view: View = Silent(),  # noqa: B008 - it has no state
    stdout_to_stderr: bool = False,
) -> Trace:
    """Record the operators of the third training step of *target*, and stop it.

    Args:
        target: a built-in name or the path of a training script.
        args: the script's own arguments.
        device: ``auto``, ``cpu``, ``cuda[:N]``, ``xpu[:N]`` or ``mps``.
        fake: compute shapes only, no values (PyTorch): for steps too heavy for this machine. Where the script
            needs a value to go on, a real step is traced instead, and a note says so.
        as_on_card: of shapes: in the ways of an accelerator, not of the CPU that computes the shapes.
        seed: seeds Python, NumPy and the framework.
        view: shows progress.
        stdout_to_stderr: send the script's standard output to standard error.

    Raises:
        UsageError: no such target or device.
        OutpaceError: the script failed, or no step could be traced.
    """
    notes: list[str] = []
    plan = protocol.Plan(measure=False, fake=fake, as_on_card=fake and as_on_card)
    blank = running.blank_run(target, args or [], device=device, seed=seed)
    run, collector = running.run(blank, view=view, stdout_to_stderr=stdout_to_stderr, plan=plan)
    if fake and run.state == "failed":
        notes.append(f"shapes alone were not enough ({run.error}); a real step was traced")
        plan = protocol.Plan(measure=False)
        run, collector = running.run(blank, view=view, stdout_to_stderr=stdout_to_stderr, plan=plan)
    measure.check(run)
    found = measured.trace_of(run, collector)
    if found is None:
        frameworks = ", ".join(collector.frameworks) or "no framework"
        raise OutpaceError(
            f"{target} ended after {run.steps} steps without one that could be traced ({frameworks})",
            "a trace needs four steps; let the script train longer",
        )
    return msgspec.structs.replace(found, notes=list(dict.fromkeys([*found.notes, *run.notes, *notes])))
