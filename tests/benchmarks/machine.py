"""What a table of times is worth nothing without: the machine, the system and the day. Measures nothing."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path


def describe_machine() -> list[str]:
    """Lines of a Markdown list."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        f"* Processor: {_processor_name()}, {os.cpu_count()} cores seen; load average at the start {load}",
        f"* System: {platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}",
        f"* Python: {platform.python_implementation()} {platform.python_version()}",
        f"* Date: {datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()}",
    ]


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()
