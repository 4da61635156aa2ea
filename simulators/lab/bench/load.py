"""A load beside what is measured: `python -m simulators.lab.bench.load cpu` computes, `... load disk FILE` syncs."""

import os
import sys
from pathlib import Path

BLOCK = bytes(64 * 1024)
BLOCKS = 256


def compute() -> None:
    """Use a core until the end of the process."""
    number = 1
    while True:
        number = number * 1103515245 % 2**61 + 12345


def sync(path: Path) -> None:
    """Write 64 KiB and wait for the disk, again and again, until the end of the process."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    at = 0
    while True:
        os.pwrite(file, BLOCK, at % BLOCKS * len(BLOCK))
        os.fdatasync(file)
        at += 1


if __name__ == "__main__":
    sync(Path(sys.argv[2])) if sys.argv[1] == "disk" else compute()
