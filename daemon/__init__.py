"""The processes and the command line: the only package that uses clocks, ports, files and the network."""

import functools
import sys
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["STARTED", "version"]

STARTED = datetime.now(UTC)
"""The time when this process started, which it publishes."""


@functools.cache
def version() -> str:
    """The installed version, read from the name of the `.dist-info` folder (PyPA's binary distribution format).

    importlib.metadata returns the same for 2.3 MiB and 30 ms, so it is used only where there is no such folder.
    """
    for folder in sys.path:
        for found in Path(folder).glob("feltd-*.dist-info"):
            return found.name.removeprefix("feltd-").removesuffix(".dist-info")
    from importlib.metadata import version as version_of

    return version_of("feltd")
