"""The import direction, and what must not be imported at all before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "outpace"
FRAMEWORKS = {"torch", "tensorflow", "keras", "jax", "numpy", "transformers", "lightning"}

#: From the bottom up; a module may import what stands in a line above its own, or in its own package.
LAYERS = [
    ["errors", "units"],
    ["records"],
    ["cards", "stats", "host", "protocol", "readings", "stopwatch", "scripts", "data", "visible", "flops"],
    ["runs", "targets", "collect", "rounds", "patch", "course", "xla", "speedups", "search", "stretch"],
    ["race", "seeding", "proof"],
    ["windows", "limits", "ceilings", "comparison", "watcher"],
    ["findings"],
    ["explanations"],
    ["operators", "prediction"],
    ["observe", "meters", "measured"],
    ["sampling", "attaching"],
    ["worker", "launch"],
    ["verbs"],
    ["report"],
    ["cli"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def unit(path: Path) -> str:
    """The layer name of a file: its top-level module or package."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, whether at import time of the file)."""
    tree = ast.parse(path.read_text())
    late = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    } | {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in late
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, id(node) not in late
            if node.module == "outpace":
                for alias in node.names:
                    yield f"outpace.{alias.name}", id(node) not in late


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_downwards(path: Path) -> None:
    if path.parent.name == "scripts" and path.name != "__init__.py":
        return  # training scripts: what a user may import, they may
    own = unit(path)
    assert own in LEVEL, f"{own} has no layer: add it to LAYERS"
    for module, _ in imports(path):
        parts = module.split(".")
        if parts[0] == "outpace" and len(parts) > 1 and parts[1] in LEVEL:
            below = LEVEL[parts[1]] < LEVEL[own]
            beside = (LEVEL[parts[1]] == LEVEL[own] and parts[1] == own) or (own, parts[1]) in BESIDE
            assert below or beside, f"{path.relative_to(SOURCE)} imports {module}, which is not below it"


#: Same layer, different file: each is a decision.
BESIDE: set[tuple[str, str]] = set()


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_frameworks_are_imported_late(path: Path) -> None:
    parts = path.relative_to(SOURCE).parts
    if parts[0] == "scripts" or (parts[0] == "observe" and len(parts) == 3 and parts[2] != "__init__.py"):
        return  # a script; the inside of an observer, itself imported late
    early = {module.split(".")[0] for module, at_import in imports(path) if at_import}
    assert not early & FRAMEWORKS


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_observers_never_meet(path: Path) -> None:
    parts = path.relative_to(SOURCE).parts
    if parts[0] != "observe" or parts[1] == "__init__.py":
        return
    own = parts[1].removesuffix(".py")
    for module, _ in imports(path):
        if module.startswith("outpace.observe."):
            assert module.split(".")[2] == own


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["train", "--help"], ["devices", "--help"], ["runs"], ["cards"]],
    ids=" ".join,
)
def test_commands_that_start_without_a_framework(arguments: list[str]) -> None:
    code = (
        "import sys; sys.argv = ['outpace', *sys.argv[1:]]\n"
        "from outpace.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"loaded = {FRAMEWORKS!r} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_files_stay_small() -> None:
    long = {path.name: lines for path in modules() if (lines := len(path.read_text().splitlines())) > 300}
    assert not long


def test_every_source_file_has_a_test() -> None:
    tests = {path.stem for path in Path(__file__).parent.rglob("test_*.py")}
    exempt = {"__main__"}
    for path in modules():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        only_a_docstring = len(ast.parse(path.read_text()).body) == 1
        if parts[0] == "scripts" or parts[-1] in exempt or only_a_docstring:
            continue
        names = [part for part in parts if part != "__init__"]
        candidates = {f"test_{'_'.join(names[:end])}" for end in range(1, len(names) + 1)}
        candidates |= {f"test_{names[-1]}"}
        assert candidates & tests, f"no test file for {path.relative_to(SOURCE)}"
