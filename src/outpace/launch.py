"""The parent side of a run: start a fresh worker, hear its events, pass signals on, see how it dies."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from outpace import protocol
from outpace.errors import OutpaceError, UsageError

#: How long to listen after the worker is gone: a forked child of the script may hold the pipe open.
DRAIN_SECONDS = 0.5


#: A script that was told to stop has so long for its own ``finally`` clauses, and then so long to end.
CLEAN_UP_SECONDS = 60.0
STOP_SECONDS = 10.0

#: Python puts the current folder first on its path; a file there must not stand in for a module of ours.
START_WORKER = "import sys; sys.path.pop(0); from outpace.worker import main; sys.exit(main())"


@dataclass(frozen=True)
class Exit:
    """How the worker process ended."""

    code: int
    """As the shell counts: 0 to 255, or minus the signal number."""
    asked: bool
    """The user asked for it (Ctrl-C, SIGTERM)."""
    spawned_at: float = 0.0
    """Seconds since the epoch; the zero of the run's time stamps."""


def environment(device: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment for *device*: the frameworks see that one device, or all for ``auto``.

    Settings that must be made before a framework is imported are made here: JAX and TensorFlow take memory
    as they need it, so that memory is measurable.

    Raises:
        UsageError: no such kind of device.
    """
    result = dict(environ)
    result.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    result.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    kind, _, index = device.partition(":")
    known = ("auto", "cpu", "cuda", "xpu", "mps")
    if kind not in known or (index and (not index.isdecimal() or kind not in ("cuda", "xpu"))):
        raise UsageError(f"unknown device {device!r}", "one of auto, cpu, cuda, cuda:N, xpu, xpu:N, mps")
    if kind == "cpu":
        result |= {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu"}
    elif kind == "cuda" and index:
        # ROCm applies both lists one after the other, so only the one in use is narrowed
        variable = "HIP_VISIBLE_DEVICES" if "HIP_VISIBLE_DEVICES" in environ else "CUDA_VISIBLE_DEVICES"
        result[variable] = _nth(environ.get(variable), int(index), device)
    elif kind == "xpu" and index:
        result["ZE_AFFINITY_MASK"] = _nth(environ.get("ZE_AFFINITY_MASK"), int(index), device)
    return result


def _nth(visible: str | None, index: int, device: str) -> str:
    """Entry *index* of a visibility list (numbers, UUIDs, MIG names); without a list the number itself."""
    if visible is None:
        return str(index)
    entries = [entry.strip() for entry in visible.split(",") if entry.strip()]
    if index >= len(entries):
        raise OutpaceError(
            f"no device {device}: only {len(entries)} are visible here", "outpace devices lists them"
        )
    return entries[index]


def run(
    script: Path,
    args: list[str],
    *,
    device: str,
    seed: int | None,
    on_event: Callable[[protocol.AnyEvent], None],
    on_output: Callable[[bytes], None] | None = None,
    on_tick: Callable[[], None] = lambda: None,
    stdout_to_stderr: bool = False,
    **asked: Any,
) -> Exit:
    """Run *script* in a fresh worker until it ends.

    Args:
        on_event: takes each event of the worker.
        on_output: takes what the script writes, which then goes to a terminal of its own; ``None``: the
            script writes where this process does.
        on_tick: called about ten times a second.
        stdout_to_stderr: keep this process' standard output free of the script's.
        asked: further fields of `protocol.Job`. A script that is stopped by what they say has a few seconds
            to clean up.

    A first SIGINT or SIGTERM interrupts the script, a second one kills it.
    """
    read_end, write_end = os.pipe()
    job = protocol.Job(
        script=str(script),
        args=args,
        device=device,
        seed=seed,
        **asked,
        events_fd=write_end,
        spawned_at=time.time(),
    )
    env = environment(device, os.environ)
    env[protocol.JOB_VARIABLE] = msgspec.json.encode(job).decode()
    if seed is not None:
        env.setdefault("PYTHONHASHSEED", str(seed % 2**32))
    terminal = Terminal() if on_output is not None else None
    stdout = terminal.theirs if terminal else sys.stderr.fileno() if stdout_to_stderr else None
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", START_WORKER],
            env=env,
            pass_fds=(write_end,),
            start_new_session=True,
            stdout=stdout,
            stderr=terminal.theirs if terminal else None,
        )
    finally:
        os.close(write_end)
        if terminal is not None:
            os.close(terminal.theirs)
    deadline = _Deadline(process) if {"plan", "race", "stretch"} & asked.keys() else None
    with _signals_passed_on(process) as signals:
        hear = on_event if deadline is None else deadline.hearing(on_event)
        readers: dict[int, Callable[[bytes], None]] = {read_end: _by_line(hear)}
        if terminal is not None and on_output is not None:
            readers[terminal.ours] = on_output
        _listen(process, readers, on_tick if deadline is None else deadline.ticking(on_tick))
        code = process.wait()
    return Exit(code=code, asked=bool(signals), spawned_at=job.spawned_at)


class _Deadline:
    """Kills a worker that was stopped and does not end: threads, loaders, a ``finally`` that hangs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._until: float | None = None

    def hearing(self, on_event: Callable[[protocol.AnyEvent], None]) -> Callable[[protocol.AnyEvent], None]:
        def hear(event: protocol.AnyEvent) -> None:
            if isinstance(event, protocol.Phase) and event.name == "over":
                self._until = time.monotonic() + CLEAN_UP_SECONDS
            elif isinstance(event, protocol.Ended):
                self._until = time.monotonic() + STOP_SECONDS
            on_event(event)

        return hear

    def ticking(self, on_tick: Callable[[], None]) -> Callable[[], None]:
        def tick() -> None:
            if self._until is not None and time.monotonic() > self._until:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            on_tick()

        return tick


class Terminal:
    """A terminal of the script's own, as wide as ours, so that it behaves as in front of a person."""

    def __init__(self) -> None:
        import fcntl
        import pty
        import termios

        self.ours, self.theirs = pty.openpty()
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(2, termios.TIOCGWINSZ, b"\0" * 8)
            fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, size)


def _by_line(on_event: Callable[[protocol.AnyEvent], None]) -> Callable[[bytes], None]:
    """A reader of chunks that decodes whole lines."""
    rest = b""

    def read(chunk: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            on_event(protocol.decode(line))

    return read


def _listen(
    process: subprocess.Popen[bytes],
    readers: dict[int, Callable[[bytes], None]],
    on_tick: Callable[[], None],
) -> None:
    """Hand what comes to the readers, by descriptor, until the worker is gone and all is silent."""
    with selectors.DefaultSelector() as selector:
        for descriptor in readers:
            selector.register(descriptor, selectors.EVENT_READ)
        gone_at: float | None = None
        while selector.get_map():
            ready = selector.select(timeout=0.1)
            for key, _ in ready:
                try:
                    chunk = os.read(key.fd, 65536)
                except OSError:  # a terminal whose other end is closed
                    chunk = b""
                if chunk:
                    readers[key.fd](chunk)
                else:
                    selector.unregister(key.fd)
            on_tick()
            if gone_at is None and process.poll() is not None:
                gone_at = time.monotonic()
            if gone_at is not None and (not ready or time.monotonic() - gone_at > DRAIN_SECONDS):
                break
    for descriptor in readers:
        os.close(descriptor)


@contextlib.contextmanager
def _signals_passed_on(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """While inside, signals to this process go to the worker's process group; yields those that came."""
    came: list[int] = []

    def send(number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        send(signal.SIGINT if len(came) == 1 else signal.SIGKILL)

    def suspend(_number: int, _frame: FrameType | None) -> None:
        send(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        send(signal.SIGCONT)

    handlers: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
        signal.SIGINT: stop,
        signal.SIGTERM: stop,
        signal.SIGHUP: stop,
        signal.SIGTSTP: suspend,
    }
    before: dict[signal.Signals, Any] = {}
    try:
        for number, handler in handlers.items():
            before[number] = signal.signal(number, handler)
    except ValueError:  # not the main thread: the caller's signals stay the caller's
        pass
    try:
        yield came
    except BaseException:
        send(signal.SIGKILL)
        process.wait()
        raise
    finally:
        for number, former in before.items():
            signal.signal(number, former)
