"""`feltd campaign` with one kind of table more: `cusc`, cussec with the FDL devices in C of docs/examples.

    export PYTHONPATH=.:tests/support
    python -m campaign_in_c --real --tables bac,text,studio,cusc --copies 5 --rounds 4000 --kills 300

plays both wires of the shoe, the fixed dome and the devices in C while edge, rules and broker are killed.
"""

import random
import tempfile
from pathlib import Path

from fdl_in_c import ConsoleInC, ShakerInC, compiled

from simulators.lab.commands import campaign
from simulators.lab.pit import KINDS
from simulators.tables.cussec import CussecTable

__all__ = ["CussecInC", "compile_devices"]


class CussecInC(CussecTable):
    """A cussec table whose shaker and console are the C programs."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.shaker = ShakerInC(random.Random(f"shaker in c {seed}"), f"C-S{seed}")
        self.console = ConsoleInC(random.Random(f"console in c {seed}"), f"C-C{seed}")
        self.devices |= {"shaker-1": self.shaker, "console-1": self.console}


def compile_devices(folder: Path) -> None:
    """Before a table is made."""
    ShakerInC.library = compiled("shaker", folder / "shaker")
    ConsoleInC.library = compiled("console", folder / "console")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="feltd-fdl-in-c-") as made:
        compile_devices(Path(made))
        KINDS["cusc"] = CussecInC
        campaign()
