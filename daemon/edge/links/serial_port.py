"""A serial port as a transport of asyncio, by file descriptor: pyserial opens the port and sets the line."""

import asyncio
import contextlib
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serial import Serial

__all__ = ["SerialProtocol", "SerialTransport"]

MAX_READ_BYTES = 65_536
"""In a burst each read is a commit, so a read takes all bytes that arrived."""
PAUSE_ABOVE_BYTES, RESUME_BELOW_BYTES = 65_536, 16_384
"""Unsent bytes above which the writer is paused, and at which it resumes."""


class SerialProtocol(asyncio.Protocol):
    """The callbacks of a port. At `connection_lost` it may still be open: a hanging driver may never close it."""

    def port_closed(self) -> None:
        """The port can be opened again."""


class SerialTransport(asyncio.Transport):
    """An open port. Its descriptor does not block (pyserial opens it so)."""

    def __init__(self, port: "Serial", protocol: SerialProtocol) -> None:
        """Reads for `protocol` from now on, and closes `port` in the end."""
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._port, self._protocol = port, protocol
        self._descriptor: int = port.fileno()
        self._unsent = bytearray()
        self._paused_writer = False
        self._closing = False
        protocol.connection_made(self)
        self.resume_reading()

    def fileno(self) -> int:
        """The descriptor of the open port."""
        return self._descriptor

    def is_closing(self) -> bool:
        """Whether the port is closed, or is being closed."""
        return self._closing

    def pause_reading(self) -> None:
        """Leave the bytes in the kernel."""
        self._loop.remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        """Go on reading."""
        if not self._closing:
            self._loop.add_reader(self._descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, MAX_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(OSError(f"read failed: {error.strerror or error}"))
            return
        if data:
            self._protocol.data_received(data)
        else:
            self._end(OSError("unplugged or switched off"))  # readable, and nothing to read

    def get_write_buffer_size(self) -> int:
        """Bytes that the port has not taken yet."""
        return len(self._unsent)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send what the port takes now, and the rest when it takes more."""
        if self._closing or not data:
            return
        waited = bool(self._unsent)
        self._unsent += data
        if not waited:
            self._write()
        if self._unsent and not waited and not self._closing:
            self._loop.add_writer(self._descriptor, self._write)
        if len(self._unsent) > PAUSE_ABOVE_BYTES and not self._paused_writer:
            self._paused_writer = True
            self._protocol.pause_writing()

    def _write(self) -> None:
        try:
            del self._unsent[: os.write(self._descriptor, self._unsent)]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(OSError(f"write failed: {error.strerror or error}"))
            return
        if not self._unsent:
            self._loop.remove_writer(self._descriptor)
        if self._paused_writer and len(self._unsent) <= RESUME_BELOW_BYTES:
            self._paused_writer = False
            self._protocol.resume_writing()

    def abort(self) -> None:
        """Close the port without waiting for unsent bytes."""
        self._end(None)

    close = abort

    def _end(self, error: OSError | None) -> None:
        """Report the loss, and close the port in a thread that nothing joins, because it may hang in the kernel."""
        if self._closing:
            return
        self._closing = True
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        self._unsent.clear()
        self._loop.call_soon(self._protocol.connection_lost, error)
        threading.Thread(target=self._close, name="close serial port", daemon=True).start()

    def _close(self) -> None:
        with contextlib.suppress(OSError):  # the port is gone, even if closing it fails
            self._port.close()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._protocol.port_closed)
