"""Properties of the machine that runs a benchmark, and resource use of a process."""

import os
import platform
from pathlib import Path

__all__ = ["cpu_seconds", "machine", "resident"]


def machine() -> str:
    """System, processor, cores and Python, on one line under each table of figures."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, seconds. Raises OSError where there is none of that id."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Resident memory of a process, bytes. Raises OSError where there is none of that id."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
