"""What the documents show exists: commands, options, links, record fields."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from outpace import scripts
from outpace.cards import load
from outpace.records import (
    VERDICTS,
    Comparison,
    Measurement,
    Method,
    Operator,
    OperatorShare,
    Prediction,
    Proof,
    Recipe,
    Run,
    Score,
    StepMemory,
    Trace,
    Trial,
)

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def shown_commands() -> list[tuple[str, str]]:
    """(document, command) for every ``$ outpace …`` line and every indented ``outpace …`` line."""
    found = []
    for document in DOCUMENTS:
        for line in document.read_text().splitlines():
            if match := re.match(r"(?:\$ |    )(outpace .*?)(?:\s+#.*)?$", line):
                found.append((document.name, match[1]))
    return found


@pytest.mark.parametrize(("document", "command"), shown_commands())
def test_shown_commands_exist(document: str, command: str) -> None:
    words = shlex.split(command)
    if "[options]" in words:
        return
    before_target = words[1:]
    if words[1] in ("train", "measure", "speedup", "trace", "predict"):
        ends = [
            index
            for index, word in enumerate(words)
            if word in scripts.names()
            or word.endswith(".py")
            or (words[1] == "predict" and word.endswith(".json"))
        ]
        assert ends, f"{document}: {command} names no target"
        before_target = words[1 : ends[0]]
    asked = [sys.executable, "-m", "outpace", *before_target, "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{document}: {command}: {done.stderr}"


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_field_of_the_record_is_documented() -> None:
    documented = set(re.findall(r"`([a-z0-9_]+)`", (ROOT / "docs" / "records.md").read_text()))
    missing = {field.encode_name for field in msgspec.structs.fields(Run)} - documented
    assert not missing


@pytest.mark.parametrize(
    "kind", [Measurement, Comparison, Trace, Operator, Method, OperatorShare, StepMemory]
)
def test_every_field_of_measuring_is_documented(kind: type[msgspec.Struct]) -> None:
    documented = set(re.findall(r"`([a-z0-9_]+)`", (ROOT / "docs" / "measurement.md").read_text()))
    missing = {field.encode_name for field in msgspec.structs.fields(kind)} - documented
    assert not missing


@pytest.mark.parametrize("kind", [Recipe, Trial, Proof, Score])
def test_every_field_of_a_recipe_is_documented(kind: type[msgspec.Struct]) -> None:
    text = (ROOT / "docs" / "speedups.md").read_text()
    documented = set(re.findall(r"`([a-z0-9_]+)`", text))
    missing = {field.encode_name for field in msgspec.structs.fields(kind)} - documented
    assert not missing


def test_every_verdict_of_a_trial_is_documented() -> None:
    text = (ROOT / "docs" / "speedups.md").read_text()
    assert not [verdict for verdict in VERDICTS if f"`{verdict}`" not in text]


def test_every_field_of_a_prediction_is_documented() -> None:
    documented = set(re.findall(r"`([a-z0-9_]+)`", (ROOT / "docs" / "predict.md").read_text()))
    missing = {field.encode_name for field in msgspec.structs.fields(Prediction)} - documented - {"version"}
    assert not missing


def test_the_number_of_cards_is_told_right() -> None:
    told = re.search(r"The table has (\d+) cards", (ROOT / "README.md").read_text())
    assert told is not None
    assert int(told[1]) == len(load())


def test_every_command_is_documented() -> None:
    text = "".join(document.read_text() for document in DOCUMENTS)
    for verb in ("train", "measure", "speedup", "trace", "predict", "compare", "devices", "cards", "runs"):
        assert f"outpace {verb}" in text


def test_the_demo_session_has_the_form_of_a_real_one() -> None:
    from outpace.report import text

    session = (ROOT / "README.md").read_text().split("```")[1]
    labels = re.findall(r"^  (\w+)  ", session, flags=re.MULTILINE)
    assert labels == ["steps", "time", "speed", "loss", "test_accuracy", "memory"]
    assert text.run_result.__doc__


def shown_outputs() -> list[tuple[str, str]]:
    """(command, output) of each `outpace cards` session in the guide."""
    text = (ROOT / "docs" / "guide.md").read_text()
    return re.findall(r"^```\n\$ outpace (cards .*?)\n(.*?)\n```$", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "output"), shown_outputs())
def test_shown_outputs_are_real(command: str, output: str) -> None:
    asked = [sys.executable, "-m", "outpace", *command.split()]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip() == output


def test_outputs_are_shown() -> None:
    assert len(shown_outputs()) >= 2
