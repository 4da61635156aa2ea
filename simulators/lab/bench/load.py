"""A load during a measurement: `python -m simulators.lab.bench.load cpu` computes, `... load disk FILE` syncs.

It ends with the process that started it, also if that is killed.
"""

import os
import sys
from pathlib import Path

BLOCK = bytes(64 * 1024)
BLOCKS = 256
STEPS = 1_000_000  # of the computation, between two checks of the parent


def compute(parent: int) -> None:
    """Use a core until the process `parent` ends."""
    number = 1
    while os.getppid() == parent:
        for _ in range(STEPS):
            number = number * 1103515245 % 2**61 + 12345


def sync(path: Path, parent: int) -> None:
    """Write 64 KiB and wait for the disk, again and again, until the process `parent` ends."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    at = 0
    while os.getppid() == parent:
        os.pwrite(file, BLOCK, at % BLOCKS * len(BLOCK))
        os.fdatasync(file)
        at += 1


if __name__ == "__main__":
    sync(Path(sys.argv[2]), os.getppid()) if sys.argv[1] == "disk" else compute(os.getppid())
