"""The child side of a run: attach the observers, run the script as ``__main__``, say how it ended."""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import msgspec

from outpace import attaching, protocol, seeding, watcher
from outpace.course import Stop
from outpace.errors import OutpaceError
from outpace.patch import around

#: The extra of ours that brings a framework in a version that we know.
EXTRAS = {"torch": "torch", "tensorflow": "tensorflow", "keras": "tensorflow", "jax": "jax"}

#: Above the numbers that scripts close when they close all they did not open.
CHANNEL_FLOOR = 1000


def main() -> int:
    """Run the job in ``OUTPACE_JOB``; returns the exit code of the process."""
    job = msgspec.json.decode(os.environ.pop(protocol.JOB_VARIABLE), type=protocol.Job)
    die_with_parent()
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it
    observed = watcher.Watch(sender(_out_of_the_way(job.events_fd)), job)
    watcher.current = observed
    seeding.when_imported(job.seed, shift=job.seeds_shifted)
    attaching.attach_when_imported(observed)
    _last_words_before_sudden_ends(observed)
    ended = _run_script(job, observed)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _say_goodbye(observed, ended)
    return ended.exit_code


def _out_of_the_way(descriptor: int) -> int:
    """*descriptor* under a high number, not inherited by programs that the script starts."""
    import fcntl
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    floor = CHANNEL_FLOOR if limit == resource.RLIM_INFINITY else min(CHANNEL_FLOOR, limit - 1)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, floor)
    os.close(descriptor)
    return moved


def _say_goodbye(observed: watcher.Watch, ended: protocol.Ended) -> None:
    """Send what is left, and how it ended."""
    with contextlib.suppress(Exception):
        observed.close()
    if _children_worked():
        observed.seen.add("children")
    peak = observed.peak() or attaching.process_peak()
    observed.emit(
        msgspec.structs.replace(
            ended,
            at=observed.now(),
            skipped_steps=observed.skipped_steps,
            versions=attaching.versions(observed),
            seen=sorted(observed.seen),
            peak_bytes=peak[0] if peak else None,
            peak_bytes_source=peak[1] if peak else None,
        )
    )


def _last_words_before_sudden_ends(observed: watcher.Watch) -> None:
    """``os._exit`` and ``exec`` end the script without coming back to us: report before they do."""
    own = os.getpid()

    def leave(original: Callable[..., Any], code: int) -> None:
        if os.getpid() == own:
            _say_goodbye(observed, _left(observed, code))
        original(code)

    def replace(original: Callable[..., Any], *args: Any) -> None:
        if os.getpid() == own:
            observed.note("the script replaced itself by another program, which is not observed")
            _say_goodbye(observed, _ended(observed, "done", None))
        original(*args)

    around(os, "_exit", leave)
    around(os, "execv", replace)
    around(os, "execve", replace)


def sender(descriptor: int) -> Callable[[protocol.Event], None]:
    """A function that writes events to *descriptor* and, once the parent is gone, does nothing."""
    broken = False

    def send(event: protocol.Event) -> None:
        nonlocal broken
        if broken:
            return
        line = memoryview(protocol.encode(event) + b"\n")
        try:
            while line:
                line = line[os.write(descriptor, line) :]
        except OSError:
            broken = True

    return send


def die_with_parent() -> None:
    """Ask Linux to end this process when the parent dies, so that no training is left behind unseen."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


#: A script that goes on after its interruption, with nobody left to see it, has this long.
GRACE_SECONDS = 10.0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    if os.getppid() == 1:  # the parent is gone
        killer = threading.Timer(GRACE_SECONDS, os.kill, (os.getpid(), signal.SIGKILL))
        killer.daemon = True
        killer.start()
    raise KeyboardInterrupt


def _run_script(job: protocol.Job, observed: watcher.Watch) -> protocol.Ended:
    script = job.script
    sys.argv = [script, *job.args]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
        _wait_for_threads()
    except OutpaceError as error:
        return _ended(observed, "failed", error.what, hint=error.hint, exit_code=error.exit_code)
    except Stop:
        return _ended(observed, "stopped", None)
    except KeyboardInterrupt:
        return _ended(observed, "interrupted", None, exit_code=130)
    except SystemExit as leaving:
        return _left(observed, leaving.code)
    except BaseException as error:
        _print_own_traceback(error, script)
        return _ended(observed, "failed", _in_one_line(error), hint=_hint(error), exit_code=1)
    return _ended(observed, "stopped" if observed.stopping else "done", None)


def _wait_for_threads() -> None:
    """Threads that the script leaves behind belong to it, as without us; they may be what trains.

    As at the interpreter's own end, executors are told first that there is nothing more to come.
    """
    endings: list[Callable[[], object]] = getattr(threading, "_threading_atexits", [])
    while endings:
        endings.pop()()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _ended(
    observed: watcher.Watch, state: str, error: str | None, *, hint: str | None = None, exit_code: int = 0
) -> protocol.Ended:
    return protocol.Ended(at=observed.now(), state=state, error=error, hint=hint, exit_code=exit_code)


def _left(observed: watcher.Watch, code: Any) -> protocol.Ended:
    """The script called ``sys.exit``."""
    if code is None or code == 0:
        return _ended(observed, "stopped" if observed.stopping else "done", None)
    if isinstance(code, int):
        return _ended(observed, "failed", f"the script ended with exit code {int(code)}", exit_code=1)
    first, *more = str(code).splitlines() or ["the script ended itself"]
    if more:  # one line the parent will print
        print(code, file=sys.stderr)
    return _ended(observed, "failed", first, exit_code=1)


def _print_own_traceback(error: BaseException, script: str) -> None:
    """The traceback as ``python script.py`` would print it: without our frames and runpy's."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _in_one_line(error: BaseException) -> str:
    """Kind and first line of an error, whatever its ``__str__`` does."""
    kind = type(error).__name__
    try:
        first = str(error).partition("\n")[0]
    except Exception:
        return kind
    return f"{kind}: {first}" if first else kind


def _hint(error: BaseException) -> str | None:
    """A way out of errors that come from the machine rather than from the script."""
    text = _in_one_line(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        missing = error.name.partition(".")[0]
        return f'pip install "outpace[{EXTRAS[missing]}]"' if missing in EXTRAS else f"pip install {missing}"
    cuda_words = (
        "not compiled with CUDA",
        "Found no NVIDIA driver",
        "No CUDA GPUs are available",
        "CUDA-capable",
    )
    if any(word in text for word in cuda_words):
        return "the script asks for CUDA and there is none here: --device cpu runs it on the CPU, unchanged"
    if "out of memory" in text.lower():
        return "the device ran out of memory: a smaller batch needs less"
    return None


def _children_worked() -> bool:
    """Whether processes that the script started and waited for did real work."""
    try:
        import resource
    except ImportError:
        return False
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime > 1.0
