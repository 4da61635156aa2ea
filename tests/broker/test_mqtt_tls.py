"""Sessions with a real broker by TLS: whole and in order, and with nobody else's broker."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from helpers import PATIENCE

from daemon.broker.connection import connect
from daemon.broker.session import BrokerLost, Message
from daemon.config.model import BadConfig, Mqtt, parse
from daemon.edge.links.mqtt import open_link
from drivers.driver import DeviceRefused, LinkLost
from simulators.lab import broker as broker_module
from simulators.lab.broker import Broker, find_mosquitto

LONG = 400_000
Key = ec.EllipticCurvePrivateKey


class Authority:
    """Who signs certificates, for a day, into a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        may_sign = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None), may_sign)
        self.path = folder / f"{name}.crt"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _signed(self, name: x509.Name, key: Key, *extensions: x509.ExtensionType) -> x509.Certificate:
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        ids = (
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
        )  # Python 3.13 refuses certificates without them, and an authority without the usage of its key
        for one in (*extensions, *ids):
            made = made.add_extension(one, critical=isinstance(one, x509.BasicConstraints))
        return made.sign(self._key, hashes.SHA256())

    def sign(self, name: str, address: str = "127.0.0.1") -> tuple[Path, Path]:
        """The files of a certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        certificate, secret = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate.write_bytes(self._signed(subject, key, alternative).public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, secret


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@pytest.fixture(params=["127.0.0.1"])
async def broker(
    request: pytest.FixtureRequest, tmp_path: Path, ours: Authority, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Broker]:
    """One that speaks TLS only; its certificate is of the address that a test gives. Strict: it wants to see ours."""
    address, _, strict = request.param.partition(" ")
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    certificate, key = ours.sign("broker", address)
    more = f"cafile {ours.path}\ncertfile {certificate}\nkeyfile {key}\n"
    if strict:
        more += "require_certificate true\n"
    monkeypatch.setattr(broker_module, "_MOSQUITTO", broker_module._MOSQUITTO + more)
    one = Broker(tmp_path)
    await one.start()
    yield one
    await one.stop()


def settings(broker: Broker, ours: Authority, **more: Any) -> Mqtt:
    return Mqtt(port=broker.port, **{"ca_file": str(ours.path), **more})


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_messages_of_any_size_arrive_whole_and_in_order(broker: Broker, ours: Authority, version: str) -> None:
    """What TLS has decrypted and nobody took wakes nobody: the last of many must not wait for the next."""
    by = settings(broker, ours, version=version)
    sizes = [1, LONG, 17, 16_384, 16_385, 65_536, 65_537, 3, 200_000, *range(1, 200), 16_000]
    async with connect(by, "reader") as reader, connect(by, "writer") as writer:
        await reader.subscribe("t")
        sent = [bytes([n % 256]) * size for n, size in enumerate(sizes)]
        for payload in sent:
            await writer.publish("t", payload)
        heard: list[Message] = []
        async with asyncio.timeout(PATIENCE):
            await writer.drained()
            while len(heard) < len(sent):
                heard += await reader.messages()
        assert [one.payload for one in heard] == sent


async def test_a_broker_that_another_signed_is_not_spoken_to(broker: Broker, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    with pytest.raises(BrokerLost, match="certificate verify failed"):
        async with connect(settings(broker, other), "x"):
            raise AssertionError


@pytest.mark.parametrize("broker", ["127.0.0.2"], indirect=True)
async def test_a_broker_with_the_certificate_of_another_is_not_spoken_to(broker: Broker, ours: Authority) -> None:
    with pytest.raises(BrokerLost, match="IP address mismatch"):
        async with connect(settings(broker, ours), "x"):
            raise AssertionError


@pytest.mark.parametrize("broker", ["127.0.0.1 strict"], indirect=True)
async def test_a_broker_that_wants_to_see_our_certificate_is_shown_it(broker: Broker, ours: Authority) -> None:
    certificate, key = ours.sign("edge-7")
    async with connect(settings(broker, ours, certificate=str(certificate), key=str(key)), "x") as session:
        await session.subscribe("t")
    with pytest.raises(BrokerLost):
        async with connect(settings(broker, ours), "x"):
            raise AssertionError


@pytest.mark.parametrize("what", ["not there", "key not there", "no certificate", "another's key", "no text"])
async def test_a_file_that_is_of_no_use_is_named(tmp_path: Path, ours: Authority, what: str) -> None:
    certificate, _ = ours.sign("a")
    _, key = ours.sign("b")
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("nothing\n")
    binary.write_bytes(b"\xff\xfe")
    given: dict[str, tuple[dict[str, str], str]] = {
        "not there": ({"ca_file": "/nowhere/ca.crt"}, "/nowhere/ca.crt: No such file or directory"),
        "key not there": (
            {"ca_file": str(ours.path), "certificate": str(certificate), "key": "/nowhere/key"},
            "/nowhere/key: No such file or directory",
        ),
        "no certificate": ({"ca_file": str(empty)}, f"{empty}: no PEM certificate"),
        "no text": ({"ca_file": str(binary)}, f"{binary}: no PEM certificate"),
        "another's key": (
            {"ca_file": str(ours.path), "certificate": str(certificate), "key": str(key)},
            f"{ours.path}, {certificate}, {key}: no PEM certificate, or a wrong or encrypted key",
        ),
    }
    settings, said = given[what]
    with pytest.raises(BrokerLost) as caught:
        async with connect(Mqtt(**settings), "x"):  # type: ignore[arg-type]
            raise AssertionError
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('key = "k"', "mqtt.certificate and mqtt.key: one without the other"),
        ('certificate = "c"', "mqtt.certificate and mqtt.key: one without the other"),
        ('certificate = "c"\nkey = "k"', "mqtt.certificate is used by TLS alone: name the ca_file, too"),
    ],
)
def test_option_without_its_companion_is_refused(lines: str, said: str) -> None:
    with pytest.raises(BadConfig, match=r"configuration:6: ") as caught:
        parse(f'[site]\nname = "s"\n[edge]\nname = "e"\n[mqtt]\n{lines}\n')
    assert said in str(caught.value)


async def test_a_device_whose_broker_speaks_tls(broker: Broker, ours: Authority, tmp_path: Path) -> None:
    def now() -> datetime:
        return datetime.now(UTC)

    url = f"mqtt://127.0.0.1:{broker.port}/?hear=says&say=listens&ca_file="
    async with connect(settings(broker, ours), "device") as device, open_link(url + str(ours.path), now) as link:
        await device.publish("says", b"hello")
        async with asyncio.timeout(PATIENCE):
            assert (await link.read()).data == b"hello\n"
    with pytest.raises(LinkLost, match="certificate verify failed"):
        async with open_link(url + str(Authority(tmp_path, "other").path), now):
            raise AssertionError
    with pytest.raises(DeviceRefused, match=r"/nowhere: No such file or directory: it cannot be read"):
        async with open_link(url + "/nowhere", now):
            raise AssertionError
