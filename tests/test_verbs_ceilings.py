"""Where the limits of a device come from, and what is said where there are none. No framework is started."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from outpace import cards, ceilings, observe
from outpace.errors import OutpaceError
from outpace.records import Device
from outpace.verbs import ceilings as verb
from tests.measurements import CEILINGS

CPU = Device(framework="torch", id="cpu", name="a CPU")
H100 = Device(framework="torch", id="cuda:0", name="NVIDIA H100 80GB HBM3", uuid="aa", card="h100-sxm-80gb")
Answers = Callable[..., list[dict[str, str]]]


@pytest.fixture(autouse=True)
def _nothing_is_known_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTPACE_DATA_DIR", str(tmp_path / "own"))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """The process of the framework answers so; gives the environments that it was asked in."""

    def answer(stdout: bytes = msgspec.json.encode(CEILINGS), stderr: bytes = b"") -> list[dict[str, str]]:
        asked: list[dict[str, str]] = []

        def run(_command: list[str], *, env: dict[str, str], **_how: Any) -> Any:
            asked.append(env)
            return SimpleNamespace(stdout=stdout, stderr=stderr)

        monkeypatch.setattr(subprocess, "run", run)
        return asked

    return answer


def test_a_cpu_is_measured_once(answers: Answers) -> None:
    asked = answers(b"a greeting\n\n" + msgspec.json.encode(CEILINGS))
    for _ in range(2):
        assert verb.ceilings_of(CPU, "torch", "2.9") == (CEILINGS, None)
    assert len(asked) == 1
    verb.ceilings_of(CPU, "torch", "2.10")
    verb.ceilings_of(CPU, "jax", "2.9")
    assert len(asked) == 3, "another version or framework is measured by itself"
    assert verb.ceilings_of(CPU, "keras on jax", "2.9")[0] == CEILINGS
    assert len(asked) == 3


def test_threads_are_part_of_what_a_cpu_can_do(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers()
    verb.ceilings_of(CPU, "torch", "2.9")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    verb.ceilings_of(CPU, "torch", "2.9")
    assert len(asked) == 2


def test_measured_again_the_better_is_kept(answers: Answers) -> None:
    answers()
    verb.ceilings_of(CPU, "torch", "2.9")
    faster = msgspec.structs.replace(CEILINGS, matrix_flops_per_second={"fp32": 11e12, "bf16": 1e12})
    answers(msgspec.json.encode(faster))
    assert verb.ceilings_of(CPU, "torch", "2.9")[0] == CEILINGS
    found, _ = verb.ceilings_of(CPU, "torch", "2.9", again=True)
    assert found == ceilings.better(faster, CEILINGS)
    assert verb.ceilings_of(CPU, "torch", "2.9")[0] == found


def test_a_known_card_has_its_datasheet_and_the_measured_cost_of_a_call(answers: Answers) -> None:
    answers()
    found, why_not = verb.ceilings_of(H100, "torch", "2.9")
    assert (found, why_not) == (
        msgspec.structs.replace(ceilings.of_card(cards.load()["h100-sxm-80gb"]), launch_seconds=5e-6),
        None,
    )
    assert verb.ceilings_of(H100, "torch", "2.9", measured=True) == (CEILINGS, None)


def test_a_card_whose_framework_fails_keeps_its_datasheet(answers: Answers) -> None:
    answers(b"", b"no driver")
    found, why_not = verb.ceilings_of(H100, "torch", "2.9")
    assert found is not None
    assert (found.launch_seconds, found.measured, why_not) == (None, False, None)


def test_the_card_that_trained_is_asked(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    verb.ceilings_of(H100, "torch", "2.9", asked="cuda:2")
    assert asked[0]["CUDA_VISIBLE_DEVICES"] == "6", "it calls itself cuda:0 there too"
    assert asked[0]["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"card": None}, "no datasheet facts of NVIDIA H100 80GB HBM3 are known"),
        ({"part": "MIG slice 1g.10gb"}, "only a part of a card (MIG slice 1g.10gb)"),
    ],
)
def test_no_ceilings_without_facts_of_the_whole_card(
    facts: dict[str, Any], said: str, answers: Answers
) -> None:
    answers()
    device = msgspec.structs.replace(H100, **facts)
    found, why_not = verb.ceilings_of(device, "torch", "2.9")
    assert found is None
    assert said in (why_not or "")
    assert "--ceilings measured" in (why_not or "")
    assert verb.ceilings_of(device, "torch", "2.9", measured=True) == (CEILINGS, None)


@pytest.mark.parametrize(
    ("stdout", "stderr", "said"),
    [
        (b"", b"Traceback\nImportError: no", "measuring the limits failed: ImportError: no"),
        (b"", b"", "measuring the limits failed: without a word"),
        (b"hello\n", b"", "measuring the limits failed"),
    ],
)
def test_why_measuring_failed(stdout: bytes, stderr: bytes, said: str, answers: Answers) -> None:
    answers(stdout, stderr)
    found, why_not = verb.ceilings_of(CPU, "torch", "2.9")
    assert found is None
    assert said in (why_not or "")
    answers()
    assert verb.ceilings_of(CPU, "torch", "2.9") == (CEILINGS, None), "a failure is not kept"


def test_a_framework_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_args: Any, **_how: Any) -> Any:
        raise subprocess.TimeoutExpired("python", verb.TIMEOUT_SECONDS)

    monkeypatch.setattr(subprocess, "run", hang)
    assert verb.ceilings_of(CPU, "torch", "2.9") == (None, "measuring the limits took more than 120 s")


def test_a_framework_that_cannot_be_asked(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers()
    monkeypatch.setattr(observe, "load", lambda _name: SimpleNamespace())
    assert verb.ceilings_of(CPU, "keras", "3") == (None, "keras cannot be asked for the limits of a device")
    assert asked == []
    with pytest.raises(OutpaceError, match="cannot be asked"):
        verb.answer("keras", "cpu")


def test_the_answer_is_the_last_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = SimpleNamespace(bench=lambda device: device)
    monkeypatch.setattr(observe, "load", lambda _name: module)
    monkeypatch.setattr(ceilings, "measure", lambda _bench, **_how: CEILINGS)
    verb.answer("torch", "cpu")
    assert msgspec.json.decode(capsys.readouterr().out.splitlines()[-1], type=type(CEILINGS)) == CEILINGS
