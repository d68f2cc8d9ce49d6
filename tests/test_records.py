"""Records: out and in again, whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import comparison
from outpace.errors import OutpaceError
from outpace.records import (
    Ceilings,
    Finding,
    Host,
    Measurement,
    Operator,
    OperatorShare,
    Run,
    StepMemory,
    StepSeconds,
    Trace,
    check_writable,
    read,
    to_json,
    write_atomically,
)
from tests.measurements import CEILINGS, measurement, span

HOST = Host(name="here", system="Linux", cpu="a CPU", cores=2.0)

finite = st.floats(allow_nan=False, allow_infinity=False)
runs = st.builds(
    Run,
    outpace=st.text(max_size=9),
    target=st.text(max_size=20),
    script=st.text(max_size=20),
    args=st.lists(st.text(max_size=9), max_size=4),
    state=st.sampled_from(["done", "failed", "interrupted", "killed"]),
    started_at=st.just("2026-01-02T03:04:05Z"),
    seconds=finite,
    host=st.just(HOST),
    step_seconds=st.lists(finite, max_size=9),
    step_samples=st.lists(st.tuples(st.none() | st.integers(0, 10**6), st.integers(1, 10**6)), max_size=5),
    losses=st.lists(st.none() | finite, max_size=9),
    metrics=st.dictionaries(st.text(max_size=5), st.none() | finite, max_size=3),
)


@given(runs)
def test_out_and_in_again(run: Run) -> None:
    assert msgspec.json.decode(to_json(run), type=Run) == run


@given(runs, st.data())
def test_a_truncated_record_is_refused(run: Run, data: st.DataObject) -> None:
    content = to_json(run).rstrip()
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(msgspec.MsgspecError):
        msgspec.json.decode(content[:cut], type=Run)


def test_a_record_says_what_it_is() -> None:
    run = Run(
        outpace="1", target="t", script="s", args=[], state="done", started_at="x", seconds=1.0, host=HOST
    )
    found = json.loads(to_json(run))
    assert found["record"] == "run"
    assert found["version"] == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"record": "trace"}', b"\xff\xfe", b"null"])
def test_foreign_files_are_refused_by_name(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(content)
    with pytest.raises(OutpaceError, match=r"record\.json is not a run record"):
        read(file, Run)


def test_missing_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(OutpaceError, match="No such file"):
        read(tmp_path / "none.json", Run)


def test_writing_makes_folders_replaces_and_respects_the_umask(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "record.json"
    write_atomically(file, b"old")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert list(file.parent.iterdir()) == [file]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~mask


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own" / "record.json"
    write_atomically(file, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutpaceError, match="No space left on device"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(file.parent.iterdir()) == [file], "no temporary file is left"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    write_atomically(Path("/dev/null"), b"new")
    assert not Path("/dev/null").is_file()
    with pytest.raises(OutpaceError, match="No space left"):
        write_atomically(Path("/dev/full"), b"new")
    assert not Path("/dev/full").is_file()
    with pytest.raises(OutpaceError):
        write_atomically(tmp_path, b"new")
    assert tmp_path.is_dir()


def test_whether_it_can_be_written_is_known_before(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "record.json")
    check_writable(Path("/dev/null"))
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "file").write_text("kept")
    check_writable(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"
    for bad in (tmp_path, tmp_path / "file" / "record.json"):
        with pytest.raises(OutpaceError, match="could not write"):
            check_writable(bad)


def test_a_really_full_device_is_said() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(OutpaceError, match="could not write"):
        write_atomically(Path("/dev/full/record.json"), b"new")


OPERATOR = Operator(
    kind="convolution",
    name="aten.convolution",
    phase="forward",
    dtype="fp32",
    inputs=((8, 3, 32, 32), (16, 3, 3, 3)),
    flops=2**40,
    seconds=0.25,
    attributes={"groups": 2, "stride": (1, 1), "causal": True, "layout": "nhwc"},
)
TRACE = Trace(
    outpace="1",
    target="t",
    script="s",
    args=["-a"],
    framework="torch",
    host=HOST,
    device="cpu",
    samples=8,
    operators=[OPERATOR, OPERATOR],
    memory=StepMemory(parameters_bytes=7),
    settings={"matmul_fp32": "tf32"},
    notes=["a"],
)
MEASUREMENT = measurement(
    trace=TRACE,
    memory=StepMemory(activations_bytes=3),
    findings=[Finding(what="data", sentence="waits")],
    repeated=[span(0.01)],
    throttled={"temperature": 0.25},
    operators=[
        OperatorShare(
            kind="matmul",
            name="aten.mm",
            phase="backward",
            dtype="bf16",
            inputs=((2, 3),),
            limit_seconds=0.001,
            limited_by="memory",
            sentence="so",
        )
    ],
)
COMPARISON = comparison.apart(MEASUREMENT, measurement(0.02), names=("a", "b"))
SAVED: list[msgspec.Struct] = [TRACE, MEASUREMENT, COMPARISON, CEILINGS]
by_kind = pytest.mark.parametrize("record", SAVED, ids=lambda record: type(record).__name__.lower())


@by_kind
def test_every_kind_comes_back_as_it_was(record: msgspec.Struct, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    write_atomically(file, to_json(record))
    assert read(file, type(record)) == record
    kind = json.loads(file.read_bytes())
    assert (kind["record"], kind["version"]) == (type(record).__name__.lower(), 1)


@given(
    st.builds(
        Ceilings,
        device=st.text(max_size=9),
        source=st.text(max_size=9),
        measured=st.booleans(),
        matrix_flops_per_second=st.dictionaries(st.text(max_size=4), finite, max_size=4),
        bandwidths=st.lists(st.tuples(st.integers(0, 2**40), finite), max_size=4),
        cache_bytes=st.none() | st.integers(0, 2**40),
        launch_seconds=st.none() | finite,
    )
)
def test_any_ceilings_come_back(ceilings: Ceilings) -> None:
    assert msgspec.json.decode(to_json(ceilings), type=Ceilings) == ceilings


@given(finite, finite, st.lists(finite, max_size=5), st.none() | finite, st.dictionaries(st.text(), finite))
def test_any_measurement_comes_back(
    low: float, high: float, window_seconds: list[float], joules: float | None, throttled: dict[str, float]
) -> None:
    record = msgspec.structs.replace(
        MEASUREMENT,
        step_seconds=StepSeconds(median=0.0, low=low, high=high, least=low, most=high),
        window_seconds=window_seconds,
        joules_per_sample=joules,
        throttled=throttled,
    )
    assert msgspec.json.decode(to_json(record), type=Measurement) == record


@by_kind
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_damaged_file_of_any_kind_is_refused(record: msgspec.Struct, share: float, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    content = to_json(record).rstrip()
    file.write_bytes(content[: int(share * len(content))])
    kind = type(record).__name__.lower()
    with pytest.raises(OutpaceError, match=rf"record\.json is not a {kind} record"):
        read(file, type(record))


@by_kind
def test_a_file_of_another_kind_is_refused(record: msgspec.Struct, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    for other in SAVED:
        if type(other) is not type(record):
            file.write_bytes(to_json(other))
            with pytest.raises(OutpaceError, match="is not a") as refused:
                read(file, type(record))
            assert refused.value.hint


@by_kind
@pytest.mark.parametrize("with_fields_we_know", [True, False])
def test_a_file_of_a_newer_outpace_is_refused_as_newer(
    record: msgspec.Struct, with_fields_we_know: bool, tmp_path: Path
) -> None:
    content = (
        json.loads(to_json(record)) if with_fields_we_know else {"record": type(record).__name__.lower()}
    )
    file = tmp_path / "record.json"
    file.write_text(json.dumps(content | {"version": 2, "more": "than we know"}))
    with pytest.raises(OutpaceError, match=r"of version 2; this outpace reads up to 1") as refused:
        read(file, type(record))
    assert "newer" in (refused.value.hint or "")


def test_fields_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text(json.dumps(json.loads(to_json(TRACE)) | {"added": "since"}))
    assert read(file, Trace) == TRACE
