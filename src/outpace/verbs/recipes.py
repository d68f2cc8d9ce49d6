"""Recipes as files: TOML, which a person can read and edit."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from outpace import runs, speedups
from outpace.errors import OutpaceError, UsageError
from outpace.records import Recipe, write_atomically

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERSION = 1


def default_path(recipe: Recipe) -> Path:
    """Where a recipe is kept unless the user says where."""
    stamp = re.sub(r"[-:]", "", recipe.made_at)
    return runs.folder().parent / "recipes" / f"{stamp}-{Path(recipe.target).stem}.toml"


def save(recipe: Recipe, path: Path) -> None:
    """Write *recipe*, whole or not at all.

    Raises:
        OutpaceError: it cannot be written.
    """
    write_atomically(path, tomli_w.dumps(_without_none(msgspec.to_builtins(recipe))).encode())


def _without_none(value: Any) -> Any:
    """TOML has no null: a field that is not there, or NaN in a list."""
    if isinstance(value, dict):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    if isinstance(value, (list, tuple)):
        return [float("nan") if one is None else _without_none(one) for one in value]
    return value


def read(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        OutpaceError: it is missing, no recipe, or of a newer version.
        UsageError: it names a speed-up that is not known.
    """
    try:
        content = tomllib.loads(path.read_text())
        _check_version(path, content)
        recipe = msgspec.convert(content, Recipe)
    except OSError as error:
        raise OutpaceError(f"could not read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise OutpaceError(
            f"{path} is not a recipe: {error}", "outpace speedup --save recipe.toml TARGET writes one"
        ) from error
    return msgspec.structs.replace(recipe, speedups=speedups.chosen(recipe.speedups))


def _check_version(path: Path, content: dict[str, Any]) -> None:
    version = content.get("version", 1)
    if content.get("record") == "recipe" and isinstance(version, int) and version > VERSION:
        raise OutpaceError(
            f"{path} is a recipe of version {version}; this outpace reads up to {VERSION}",
            "read it with the outpace that wrote it, or a newer one",
        )


def asked(text: str) -> tuple[list[str], Recipe | None]:
    """What ``--with`` names: speed-ups, or a recipe by its path.

    Raises:
        OutpaceError, UsageError: as `read`, and `speedups.chosen`.
    """
    if text.endswith(".toml") or "/" in text:
        recipe = read(Path(text))
        return recipe.speedups, recipe
    try:
        return speedups.chosen(text), None
    except UsageError as error:
        raise UsageError(error.what, f"{error.hint}; or the path of a recipe, which ends in .toml") from error


def differences(
    recipe: Recipe, *, device_name: str | None = None, script_sha256: str | None = None
) -> list[str]:
    """In what this training is not the one that *recipe* was proven for; ``None`` is not looked at."""
    found = []
    for library, before in recipe.versions.items():
        try:
            now = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
        if now.partition("+")[0] != before.partition("+")[0]:
            found.append(f"{library} {before} (here {now})")
    if device_name and recipe.device_name and device_name != recipe.device_name:
        found.append(f"{recipe.device_name} (here {device_name})")
    if script_sha256 and recipe.script_sha256 and script_sha256 != recipe.script_sha256:
        found.append("another script, or another state of it")
    return found


def warning(found: list[str]) -> str | None:
    """One sentence about `differences`."""
    if not found:
        return None
    return (
        f"the recipe was made for {', '.join(found)}; gain and proof may not hold here: "
        "outpace speedup measures again"
    )
