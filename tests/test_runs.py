"""The folder of records."""

from __future__ import annotations

from pathlib import Path

import pytest

from outpace import runs
from outpace.errors import OutpaceError
from outpace.records import Host, Run, read


def a_run(started_at: str = "2026-01-02T03:04:05.678Z", target: str = "cnn") -> Run:
    return Run(
        outpace="1",
        target=target,
        script="/x/cnn.py",
        args=[],
        state="done",
        started_at=started_at,
        seconds=1.5,
        host=Host(name="here", system="Linux", cpu="a CPU", cores=2.0),
        metrics={"test_accuracy": 0.97},
    )


def test_saved_runs_are_listed_newest_first() -> None:
    older, newer = a_run("2026-01-02T03:04:05.678Z"), a_run("2026-05-02T03:04:05.678Z", "../my train.py")
    paths = [runs.save(newer), runs.save(older)]
    assert all(path.parent == runs.folder() for path in paths)
    found, broken = runs.summaries()
    assert broken == []
    assert [run.started_at for run in found] == [newer.started_at, older.started_at]
    assert Path(found[0].file) == paths[0]
    assert read(paths[0], Run) == newer
    assert found[0].metrics == {"test_accuracy": 0.97}


def test_where_the_user_wants_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "record.json"
    assert runs.save(a_run(), path) == path
    assert runs.summaries() == ([], [])


def test_a_broken_record_is_named_and_does_not_hide_the_others() -> None:
    runs.save(a_run())
    (runs.folder() / "broken.json").write_text("{")
    found, broken = runs.summaries()
    assert len(found) == 1
    assert len(broken) == 1
    assert "broken.json" in broken[0]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OUTPACE_DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(OutpaceError, match="could not write"):
        runs.save(a_run())
