"""The processes: the only place with a clock, ports, files and the network."""

import functools
import importlib.metadata

__all__ = ["version"]


@functools.cache
def version() -> str:
    """Of feltd, as it is installed."""
    return importlib.metadata.version("feltd")
