"""What a TARGET on the command line means: a built-in script's name, or a path."""

from __future__ import annotations

import difflib
from pathlib import Path

from outpace import scripts
from outpace.errors import UsageError


def find(target: str) -> Path:
    """The script that *target* names; a file of that name in the way of a built-in one wins only with a path.

    Raises:
        UsageError: there is neither; the message offers what is near.
    """
    if target in scripts.names():
        return scripts.find(target)
    path = Path(target)
    if not target.strip():
        raise UsageError(
            "an empty target", f"a path of a training script, or one of {', '.join(scripts.names())}"
        )
    if path.is_file():
        return path.resolve()
    if path.is_dir() and (path / "__main__.py").is_file():
        return path.resolve()
    if path.is_dir():
        raise UsageError(f"{target} is a folder without a __main__.py", "name the script in it")
    nearby = path.parent.glob("*.py") if path.parent.is_dir() else ()
    candidates = [*scripts.names(), *(str(file) for file in nearby)]
    close = difflib.get_close_matches(target, candidates, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}?" if close else None
    built_in = ", ".join(scripts.names())
    raise UsageError(
        f"unknown target {target!r}", hint or f"a path of a training script, or one of {built_in}"
    )
