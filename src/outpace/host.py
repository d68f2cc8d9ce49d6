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
        matrix_extensions=matrix_extensions(),
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
    name = _proc_value(Path("/proc/cpuinfo"), "model name")
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


#: Flags of /proc/cpuinfo, by what vendors call them.
EXTENSIONS = {
    "amx_bf16": "AMX-BF16",
    "amx_fp16": "AMX-FP16",
    "amx_int8": "AMX-INT8",
    "avx512_bf16": "AVX512-BF16",
    "avx512_fp16": "AVX512-FP16",
    "avx512_vnni": "AVX512-VNNI",
    "avx_vnni": "AVX-VNNI",
    "avx512f": "AVX512",
    "avx2": "AVX2",
    "sve": "SVE",
    "bf16": "NEON-BF16",
    "asimd": "NEON",
}


def matrix_extensions(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """The vector and matrix extensions that decide how fast this CPU multiplies, the strongest first."""
    flags = (_proc_value(cpuinfo, "flags") or _proc_value(cpuinfo, "Features") or "").split()
    return tuple(name for flag, name in EXTENSIONS.items() if flag in flags)


def fast_dtypes(extensions: tuple[str, ...]) -> dict[str, bool]:
    """Which 16-bit types this CPU computes in itself; the others are emulated, and slower than fp32."""
    return {
        "bf16": any(name.endswith("-BF16") for name in extensions),
        "fp16": any(name.endswith("-FP16") for name in extensions),
    }


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


def _proc_value(file: Path, key: str) -> str | None:
    try:
        for line in file.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key and value.strip():
                return value.strip()
    except OSError:
        pass
    return None
