"""The Ed25519 keys of a journal, in PEM files.

Imported only if a key is configured or a signature is verified: the library costs 8 MiB of memory.
"""

import hashlib
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from daemon import whole_files

__all__ = ["BadKey", "Key", "PublicKey", "make_key", "public_path"]

_EXISTS = "exists already; keys are never overwritten, give another name"


class BadKey(Exception):
    """An unusable key file. The message names the file and the remedy."""


class PublicKey:
    """Verifies signatures. `id` is the beginning of the SHA-256 over the 32 raw bytes of the key."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        self._key = key
        raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.id = hashlib.sha256(raw).hexdigest()[:16]

    @classmethod
    def load(cls, path: Path) -> "PublicKey":
        """Read a PEM file. Raises BadKey."""
        try:
            key = serialization.load_pem_public_key(_read(path))
        except (ValueError, UnsupportedAlgorithm) as error:
            raise BadKey(
                f"{path}: no public key in PEM; `feltd journal key` writes one beside the private key"
            ) from error
        if not isinstance(key, Ed25519PublicKey):
            raise BadKey(f"{path}: not an Ed25519 key")
        return cls(key)

    def signed(self, statement: bytes, signature: bytes) -> bool:
        """Whether the owner of the private key signed exactly these bytes."""
        try:
            self._key.verify(signature, statement)
        except InvalidSignature:
            return False
        return True


class Key:
    """Signs."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())
        self.id = self.public.id

    @classmethod
    def load(cls, path: Path) -> "Key":
        """Read a PEM file that only its owner may read. Raises BadKey."""
        raw = _read(path)
        if path.stat().st_mode & 0o077:
            raise BadKey(f"{path}: other users may read or write it; chmod 600 {path}, or make a new key")
        try:
            key = serialization.load_pem_private_key(raw, None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadKey(
                f"{path}: no private key in PEM without a password; make one with `feltd journal key`"
            ) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise BadKey(f"{path}: not an Ed25519 key; make one with `feltd journal key`")
        return cls(key)

    def sign(self, statement: bytes) -> bytes:
        """64 bytes."""
        return self._key.sign(statement)


def public_path(path: Path) -> Path:
    """The path of the public half."""
    return path.with_name(path.name + ".pub")


def make_key(path: Path) -> Key:
    """Create a key: `path` for its owner only, the public half beside it. Raises BadKey; nothing is overwritten."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    if os.path.lexists(path):
        raise BadKey(f"{path}: {_EXISTS}")
    # The private half is written last: a key that can be used has its public half beside it.
    for where, raw, mode in ((public_path(path), public, 0o644), (path, private, 0o600)):
        try:
            whole_files.create(where, raw, mode)
        except FileExistsError as error:
            raise BadKey(f"{where}: {_EXISTS}") from error
        except OSError as error:
            raise BadKey(f"{where}: {error.strerror}; name a file in a folder that this user may write") from error
    return Key(key)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadKey(f"{path}: {error.strerror}; give the path of a PEM file that this user may read") from error
