"""An encrypted stream: written and read in order, and refused where a byte was changed or its end is missing.

The construction is STREAM (Hoang, Reyhanitabar, Rogaway, Vizár 2015) over AES-256-GCM: chunks of 1 MiB, each with its
number and whether it is the last one in its nonce. The key comes from a passphrase by scrypt (RFC 7914).
"""

import io
import os
from typing import IO, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

__all__ = ["BadSealed", "Opened", "Sealed"]

_MAGIC = b"feltd backup 1\n"
_SALT, _PREFIX, _TAG = 16, 7, 16
_CHUNK = 1024 * 1024
_COST = 2**16
"""The cost of scrypt, with blocks of 8: 64 MiB of memory and some tenths of a second for each guess."""


class BadSealed(Exception):
    """The stream cannot be read. The message gives the reason and the remedy."""


def _key(passphrase: str, salt: bytes) -> AESGCM:
    return AESGCM(Scrypt(salt, 32, _COST, 8, 1).derive(passphrase.encode()))


class Sealed(io.RawIOBase):
    """Encrypts what is written to `file`. `close` writes the last chunk, without which the stream is refused."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        """`file` stays open."""
        salt, self._prefix = os.urandom(_SALT), os.urandom(_PREFIX)
        self._header = _MAGIC + salt + self._prefix
        self._key, self._file = _key(passphrase, salt), file
        self._number, self._waiting = 0, bytearray()
        file.write(self._header)

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, data: Any, /) -> int:
        """Take all of it."""
        self._waiting += data
        while len(self._waiting) > _CHUNK:
            self._put(bytes(self._waiting[:_CHUNK]), last=False)
            del self._waiting[:_CHUNK]
        return len(data)

    def close(self) -> None:
        """Write the last chunk, once."""
        if not self.closed:
            self._put(bytes(self._waiting), last=True)
        super().close()

    def _put(self, chunk: bytes, *, last: bool) -> None:
        nonce = self._prefix + self._number.to_bytes(4, "big") + bytes([last])
        self._file.write(self._key.encrypt(nonce, chunk, self._header))
        self._number += 1


class Opened(io.RawIOBase):
    """Reads what `Sealed` wrote. Raises BadSealed at the first chunk that is not as it was written."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        """Raises BadSealed if the file is not an encrypted backup."""
        self._header = file.read(len(_MAGIC) + _SALT + _PREFIX)
        if not self._header.startswith(_MAGIC) or len(self._header) < len(_MAGIC) + _SALT + _PREFIX:
            raise BadSealed("this is no encrypted backup of feltd; name the file that `feltd backup` wrote")
        self._prefix = self._header[-_PREFIX:]
        self._key, self._file = _key(passphrase, self._header[len(_MAGIC) : -_PREFIX]), file
        self._number, self._ready, self._ended = 0, b"", False
        self._next = file.read(_CHUNK + _TAG)

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """The next bytes; 0 at the proven end."""
        while not self._ready and not self._ended:
            self._ready = self._chunk()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _chunk(self) -> bytes:
        chunk, self._next = self._next, self._file.read(_CHUNK + _TAG)
        self._ended = not self._next
        nonce = self._prefix + self._number.to_bytes(4, "big") + bytes([self._ended])
        self._number += 1
        try:
            return self._key.decrypt(nonce, chunk, self._header)
        except InvalidTag as error:
            what = "the passphrase is different, or the file was" if self._number == 1 else "the file was"
            raise BadSealed(f"{what} changed or cut; take another copy of it") from error
