"""The built-in training scripts; the folder is the registry."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The built-in targets."""
    return sorted(file.stem.replace("_", "-") for file in FOLDER.glob("[!_]*.py"))


def find(name: str) -> Path:
    """The file of the built-in target *name*."""
    return FOLDER / f"{name.replace('-', '_')}.py"
