"""Records as files: JSON out and in, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

from outpace.errors import OutpaceError

Record = TypeVar("Record", bound=msgspec.Struct)


def to_json(record: msgspec.Struct) -> bytes:
    """The record as JSON: keys in the order of the fields, numbers as plain numbers, one line at the end."""
    return msgspec.json.encode(record) + b"\n"


def write_atomically(path: Path, content: bytes) -> None:
    """Write *content* so that *path* holds the old or the new content, never a part.

    What is no file (``/dev/stdout``, a pipe) is written to as it is; it must not be replaced by one.

    Raises:
        OutpaceError: the folder cannot be written, or the disk is full; nothing is left behind.
    """
    temporary: str | None = None
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise OutpaceError(
            f"could not write {path}: {error.strerror or error}", "choose another place, or free some space"
        ) from error


def check_writable(path: Path) -> None:
    """That *path* can be written later, without touching it.

    Raises:
        OutpaceError: its folder cannot be made or written, or it is a folder itself.
    """
    if path.is_dir():
        raise OutpaceError(f"could not write {path}: it is a folder", "name a file in it")
    if path.exists() and not path.is_file():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise OutpaceError(
            f"could not write {path}: {error.strerror or error}", "choose another place for the record"
        ) from error


def read(path: Path, kind: type[Record]) -> Record:
    """Read a saved record of *kind*.

    Raises:
        OutpaceError: the file is missing, truncated, of another kind or of a newer version.
    """
    try:
        content = path.read_bytes()
        _check_version(path, content, kind)
        return msgspec.json.decode(content, type=kind)
    except OSError as error:
        raise OutpaceError(f"could not read {path}: {error.strerror or error}") from error
    except msgspec.MsgspecError as error:
        raise OutpaceError(
            f"{path} is not a {kind.__name__.lower()} record: {error}",
            "is it complete, and written by outpace?",
        ) from error


class _Head(msgspec.Struct):
    record: str
    version: int = 1


def _check_version(path: Path, content: bytes, kind: type[msgspec.Struct]) -> None:
    known = {field.name: field.default for field in msgspec.structs.fields(kind)}.get("version", 1)
    head = msgspec.json.decode(content, type=_Head)
    if head.record == kind.__struct_config__.tag and head.version > known:
        raise OutpaceError(
            f"{path} is a {head.record} record of version {head.version}; this outpace reads up to {known}",
            "read it with the outpace that wrote it, or a newer one",
        )


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
