"""Where records of runs are kept, and the list of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import platformdirs

from outpace.errors import OutpaceError
from outpace.records import Run, read, to_json, write_atomically


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a saved `Run` that a list of runs needs."""

    target: str
    state: str
    started_at: str
    seconds: float
    steps: int
    device: str | None = None
    samples_per_second: float | None = None
    metrics: dict[str, float | None] = {}
    file: str = ""


def folder() -> Path:
    """The folder of the records: ``$OUTPACE_DATA_DIR/runs``, else in the user's data folder."""
    own = os.environ.get("OUTPACE_DATA_DIR")
    return (Path(own) if own else Path(platformdirs.user_data_dir("outpace"))) / "runs"


def save(run: Run, path: Path | None = None) -> Path:
    """Write *run* to *path*, or under a name of its own into the records' folder; returns where.

    Raises:
        OutpaceError: it cannot be written.
    """
    path = path or default_path(run)
    write_atomically(path, to_json(run))
    return path


def default_path(run: Run) -> Path:
    """Where *run* is kept unless the user says where."""
    stamp = re.sub(r"[-:]", "", run.started_at)
    target = re.sub(r"[^\w.-]", "_", Path(run.target).name)
    return folder() / f"{stamp}-{target}-{os.getpid()}.json"


def summaries() -> tuple[list[Summary], list[str]]:
    """The saved runs, newest first, and the files that could not be read, with the reason."""
    found: list[Summary] = []
    broken: list[str] = []
    for file in sorted(folder().glob("*.json"), reverse=True):
        try:
            found.append(msgspec.structs.replace(read(file, Summary), file=str(file)))
        except OutpaceError as error:
            broken.append(error.what)
    found.sort(key=lambda summary: summary.started_at, reverse=True)
    return found, broken
