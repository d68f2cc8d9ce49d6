"""The machine this process runs on: what it may use, not what is soldered."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from outpace.records import Host


def here() -> Host:
    """This machine."""
    return Host(
        name=platform.node(),
        system=f"{platform.system()} {platform.release()}",
        cpu=cpu_name(),
        cores=cores(),
        memory_bytes=memory_bytes(),
    )


def cores(root: Path = Path("/sys/fs/cgroup")) -> float:
    """Cores that this process may use: scheduling affinity, capped by the container's CPU quota.

    Args:
        root: where the cgroup file system is mounted (version 2 and version 1 are read).
    """
    if hasattr(os, "sched_getaffinity"):
        available = float(len(os.sched_getaffinity(0)))
    else:
        available = float(os.cpu_count() or 1)
    quota = _cgroup_quota(root)
    return min(available, quota) if quota is not None else available


def cpu_name() -> str:
    """The processor's name as the system tells it, or its architecture."""
    name = _proc_value("/proc/cpuinfo", "model name")
    if name is None and sys.platform == "darwin":
        import subprocess

        asked = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            check=False,
        )
        name = asked.stdout.strip()
    return name or platform.processor() or platform.machine()


def memory_bytes() -> int | None:
    """The machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _cgroup_quota(root: Path) -> float | None:
    own = _own_cgroup()
    for folder in dict.fromkeys((root / own, root)):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            if quota != "max":
                return int(quota) / int(period)
        except (OSError, ValueError):
            continue
    try:
        quota_us = int((root / "cpu" / "cpu.cfs_quota_us").read_text())
        period_us = int((root / "cpu" / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return quota_us / period_us if quota_us > 0 else None


def _own_cgroup() -> str:
    """This process' folder below the cgroup root (version 2), relative."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), "")


def _proc_value(file: str, key: str) -> str | None:
    try:
        for line in Path(file).read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key and value.strip():
                return value.strip()
    except OSError:
        pass
    return None
