"""How long the command line takes to answer: the median of fresh processes.

    python bench/start_up.py [--runs 20]
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import time

from outpace import host


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, {host.cpu_name()}, {host.cores():g} cores, {args.runs} runs each")
    for command in (["--help"], ["train", "--help"], ["runs"], ["cards"]):
        seconds = []
        for _ in range(args.runs + 1):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "outpace", *command], stdout=subprocess.DEVNULL, check=True)
            seconds.append(time.perf_counter() - began)
        median, low, high = statistics.median(seconds[1:]), min(seconds[1:]), max(seconds[1:])
        print(f"  outpace {' '.join(command):<14} {median:.3f} s median, {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
