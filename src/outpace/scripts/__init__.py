"""The built-in training scripts; the folder is the registry."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The built-in targets."""
    return sorted(file.stem.replace("_", "-") for file in FOLDER.glob("[!_]*.py"))


def find(name: str) -> Path:
    """The file of the built-in target *name*, one of `names()`."""
    return FOLDER / f"{name.replace('-', '_')}.py"


def description(name: str) -> str:
    """The first line of the script's docstring; the script is not imported."""
    text = ast.get_docstring(ast.parse(find(name).read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].rstrip(".")
