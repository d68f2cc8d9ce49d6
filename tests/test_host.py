"""What this process may use of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from outpace import host


def test_here() -> None:
    found = host.here()
    assert found.cpu
    assert found.cores >= 0.01
    assert found.memory_bytes is None or found.memory_bytes > 2**20


def test_a_containers_quota_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(64)), raising=False)
    monkeypatch.setattr(host, "_own_cgroup", lambda: "")
    assert host.cores(tmp_path) == 64
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert host.cores(tmp_path) == 64
    (tmp_path / "cpu.max").write_text("350000 100000\n")
    assert host.cores(tmp_path) == 3.5
    (tmp_path / "cpu.max").write_text("nonsense")
    assert host.cores(tmp_path) == 64


def test_the_old_cgroups_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(64)), raising=False)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert host.cores(tmp_path) == 64
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("200000\n")
    assert host.cores(tmp_path) == 2


def test_affinity_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 5}, raising=False)
    assert host.cores(tmp_path) == 2
