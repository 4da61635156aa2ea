"""A small certificate authority for a site that has none: one folder with its key, certificates and revocation list.

`issued.json` lists every certificate. Keys are ECDSA P-256, certificates X.509 v3 (RFC 5280). The common name of a
client is its user on the broker, which mosquitto takes as the user name (`use_identity_as_username`).
"""

import ipaddress
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct
from msgspec.structs import replace

from daemon import whole_files
from protocols.contract.topics import is_id

__all__ = ["Authority", "BadAuthority", "Issued"]

Kind: TypeAlias = Literal["client", "server"]
CA_DAYS = 3650
DAYS = 825
"""The validity of a certificate, BACKDATE included. Some TLS libraries refuse servers' certificates that are valid for
longer."""
BACKDATE = timedelta(hours=1)
"""A certificate is valid this long before it was made: clocks of a site differ."""
_Key: TypeAlias = ec.EllipticCurvePrivateKey


class BadAuthority(Exception):
    """The authority cannot do what was requested. The message names the file and the remedy."""


class Issued(Struct, frozen=True, omit_defaults=True):
    """A certificate that was made. `hosts`: the addresses of a server. `serial` in hexadecimal digits."""

    name: str
    kind: Kind
    serial: str
    begins: datetime
    ends: datetime
    hosts: tuple[str, ...] = ()
    revoked: datetime | None = None


class Authority:
    """The authority in `folder`."""

    def __init__(self, folder: Path, now: datetime | None = None) -> None:
        """Open it. Raises BadAuthority."""
        self.folder = folder
        self._now = now or datetime.now(UTC)
        try:
            self._certificate = x509.load_pem_x509_certificate(_read(folder / "ca.crt"))
            key = serialization.load_pem_private_key(_read(folder / "ca.key"), None)
            self._issued = msgspec.json.decode(_read(folder / "issued.json"), type=tuple[Issued, ...])
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadAuthority(f"{folder}: the authority cannot be read: {error}; restore it from a copy") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise BadAuthority(f"{folder / 'ca.key'}: not a key of `feltd pki init`")
        if key.public_key() != self._certificate.public_key():
            raise BadAuthority(f"{folder}: ca.key does not belong to ca.crt; restore both from a copy")
        self._key = key

    @classmethod
    def create(cls, folder: Path, site: str, now: datetime | None = None) -> "Authority":
        """Make one, over an unfinished one. Raises BadAuthority where a different or incomplete one exists."""
        at = now or datetime.now(UTC)
        issued = folder / "issued.json"
        there = [path for path in (folder / "ca.key", folder / "ca.crt", issued) if path.exists()]
        interrupted = issued in there and folder / "ca.key" not in there and _read(issued) == b"[]"
        if there and not interrupted:
            raise BadAuthority(f"{folder}: an authority is there already; certificates of a second one would differ")
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise BadAuthority(f"{folder}: {error.strerror}; name a folder that this user may write") from error
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(f"feltd {site} authority")
        made = _builder(name, name, key, at, at + timedelta(days=CA_DAYS), x509.random_serial_number())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        made = made.add_extension(_usage(authority=True), critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        certificate = made.sign(key, hashes.SHA256())
        _write(issued, b"[]", 0o644)  # written first: a ca.crt without this list belongs to another authority
        _write(folder / "ca.crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        _write_revoked(folder, certificate, key, (), at)
        _write(folder / "ca.key", _pem_of(key), 0o600)  # written last: with its key an authority is complete
        return cls(folder, at)

    @property
    def ends(self) -> datetime:
        """When the authority's own certificate ends."""
        return self._certificate.not_valid_after_utc

    def issued(self) -> tuple[Issued, ...]:
        """Every certificate, the oldest first."""
        return self._issued

    def issue(self, name: str, hosts: Sequence[str] = (), days: int = DAYS) -> Issued:
        """Make a certificate and its key: of a server where it has `hosts`, else of a client. Raises BadAuthority."""
        if not is_id(name):
            raise BadAuthority(f"{name!r}: a name is small letters, digits and hyphens, for example edge-7")
        if name == "ca":
            raise BadAuthority("'ca' is the name of the authority's own files; give another name")
        if (valid := self._valid(name)) is not None and valid.hosts == tuple(hosts):
            raise BadAuthority(f"{name} has a valid certificate; `feltd pki renew {name}` replaces it")
        if valid is not None:
            of = f"a broker at {', '.join(valid.hosts)}" if valid.hosts else "a client"
            raise BadAuthority(f"{name} has a valid certificate of {of}; `feltd pki revoke {name}` makes room for this")
        return self._make(name, tuple(hosts), days)

    def renew(self, name: str, days: int = DAYS) -> Issued:
        """Make a new certificate and key under the same name; the old one stays valid. Raises BadAuthority."""
        before = [one for one in self._issued if one.name == name]
        if not before:
            raise BadAuthority(f"{self.folder}: no certificate was made for {name!r}; `feltd pki issue` makes one")
        return self._make(name, before[-1].hosts, days)

    def revoke(self, name: str) -> tuple[Issued, ...]:
        """Revoke every valid certificate of this name. Raises BadAuthority."""
        gone = tuple(one for one in self._issued if one.name == name and self._counts(one))
        if not gone:
            raise BadAuthority(f"{self.folder}: {name!r} has no valid certificate; `feltd pki list` shows all")
        issued = tuple(replace(one, revoked=self._now) if one in gone else one for one in self._issued)
        # The brokers' list is written before issued.json: after a kill in between, the revocation can be repeated.
        _write_revoked(self.folder, self._certificate, self._key, issued, self._now)
        self._save(issued)
        return gone

    def _counts(self, one: Issued) -> bool:
        return one.revoked is None and one.ends > self._now

    def _valid(self, name: str) -> Issued | None:
        return next((one for one in self._issued if one.name == name and self._counts(one)), None)

    def _make(self, name: str, hosts: tuple[str, ...], days: int) -> Issued:
        ends = min(self._now - BACKDATE + timedelta(days=days), self.ends)
        if ends <= self._now:
            raise BadAuthority(f"{self.folder}: the authority itself ended on {self.ends:%Y-%m-%d}; make a new one")
        key = ec.generate_private_key(ec.SECP256R1())
        serial = x509.random_serial_number()
        made = _builder(_name(name), self._certificate.subject, key, self._now, ends, serial)
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(_usage(authority=False), critical=True)
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        made = made.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(signer, critical=False)
        if hosts:
            made = made.add_extension(x509.SubjectAlternativeName([_address(one) for one in hosts]), critical=False)
        certificate = made.sign(self._key, hashes.SHA256())
        kind: Kind = "server" if hosts else "client"
        begins = certificate.not_valid_before_utc
        issued = Issued(name, kind, f"{serial:x}", begins, certificate.not_valid_after_utc, hosts)
        # Written down first: a certificate that exists can always be revoked.
        self._save((*self._issued, issued))
        _write(self.folder / f"{name}.key", _pem_of(key), 0o600)
        _write(self.folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        return issued

    def _save(self, issued: tuple[Issued, ...]) -> None:
        _write(self.folder / "issued.json", msgspec.json.format(msgspec.json.encode(issued)), 0o644)
        self._issued = issued


def _write_revoked(
    folder: Path, authority: x509.Certificate, key: _Key, issued: Iterable[Issued], now: datetime
) -> None:
    """Write the revocation list, valid as long as the authority: with an expired list a broker refuses all clients."""
    made = x509.CertificateRevocationListBuilder(authority.subject, now - BACKDATE, authority.not_valid_after_utc)
    for one in issued:
        if one.revoked is not None:
            entry = x509.RevokedCertificateBuilder(int(one.serial, 16), one.revoked).build()
            made = made.add_revoked_certificate(entry)
    _write(folder / "ca.crl", made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), 0o644)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _address(host: str) -> x509.GeneralName:
    """Raises BadAuthority."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise BadAuthority(f"{host!r} is no address and no name of a computer, for example broker.lan") from error


def _builder(
    name: x509.Name, issuer: x509.Name, key: _Key, at: datetime, ends: datetime, serial: int
) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder(issuer, name, key.public_key(), serial)
    return made.not_valid_before(at - BACKDATE).not_valid_after(ends)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _pem_of(key: _Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadAuthority(f"{path} is not there; `feltd pki init` makes an authority") from error
    except OSError as error:
        raise BadAuthority(f"{path}: {error.strerror}; only the user who made the authority may read it") from error


def _write(path: Path, raw: bytes, mode: int) -> None:
    """Raises BadAuthority."""
    try:
        whole_files.write(path, raw, mode)
    except OSError as error:
        raise BadAuthority(f"{path}: {error.strerror}; give the command again when it can be written") from error
