"""Where and when the numbers were taken."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.engines import versions


def describe() -> dict[str, str]:
    """What a reader needs to judge the numbers, as label and text."""
    return {
        "machine": f"{_cpu()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _cpu() -> str:
    """The processor's model, or as much of it as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
