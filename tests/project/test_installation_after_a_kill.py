"""An installation that is killed at any command is completed by `dpkg --configure -a`, which runs the script again."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import PATIENCE, at_length

ROOT = Path(__file__).parents[2]
STUBS = {
    # The groups of the package are not on this computer.
    "install": 'exec /usr/bin/install $(echo "$*" | sed "s/-[og] [a-z-]*//g")',
    "deb-systemd-invoke": 'cp "$FOLDER/etc/mosquitto/feltd.passwd" "$FOLDER/loaded"',  # as the broker does at its start
    "dpkg-query": 'cat "$FOLDER/conffiles" 2>/dev/null',
    "systemd-sysusers": "",
    # feltd journal key PATH writes a pair; feltd mac-keys is the program itself.
    "feltd": f'[ "$1" = journal ] && touch "$3.pub" "$3" || exec "{Path(sys.executable).parent}/feltd" "$@"',
    "chown": "",
    "py3compile": "",
    "udevadm": "",
}
KEYS = ("console.pem", "console.pem.pub")
"""By which the console signs its orders."""
KILLED = 'set -T; trap \'[ $((n = n + 1)) != "$AT" ] || kill -9 0\' DEBUG; . "$0" configure'
"""Runs a script, and kills all of it before its command number AT, also within a function or a pipe."""


class Computer:
    """A folder in place of `/`, with stubs for what needs a system."""

    def __init__(self, folder: Path, users: Sequence[str]) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        for part in ("etc/mosquitto/conf.d", "run/systemd/system", "usr/share/feltd"):
            (folder / part).mkdir(parents=True)
        shutil.copy(ROOT / "systemd/mosquitto-feltd.conf", folder / "usr/share/feltd/mosquitto.conf")
        for name, body in STUBS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (folder / "bin" / name).chmod(0o755)
        text = (ROOT / "debian/feltd.postinst").read_text(encoding="utf-8")
        text = re.sub(rf"(?m)^    password (?!{'|'.join(users)}).*\n", "", text)
        self.users = re.findall(r"(?m)^    password (\w+) ", text)
        self.script = folder / "postinst"
        self.script.write_text(re.sub(r"(?<![\w/])/(etc|run|usr/share)/", rf"{folder}/\1/", text), encoding="utf-8")

    @property
    def broker(self) -> Path:
        """The settings of the broker."""
        return self.folder / "etc/mosquitto/conf.d/feltd.conf"

    @property
    def shipped(self) -> Path:
        """Those that are in the package."""
        return self.folder / "usr/share/feltd/mosquitto.conf"

    def install(self, before: str = "") -> bool:
        """Whether the script came to its end: it is killed before this command, counted from 1."""
        words = ["bash", "-c", KILLED, str(self.script)]
        path = f"{self.folder / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"
        done = subprocess.run(
            words,
            env={"PATH": path, "FOLDER": str(self.folder), "AT": before},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode in (0, -9)
        return done.returncode == 0

    def passwords(self) -> dict[str, str]:
        return {
            user: (self.folder / "etc/feltd/mqtt" / user).read_text(encoding="ascii").strip() for user in self.users
        }

    def accepted(self) -> list[str]:
        """The users whose password is in what the broker has loaded."""
        found = []
        for line in (self.folder / "loaded").read_text(encoding="ascii").splitlines():
            user, (_, kind, rounds, salt, digest) = line.split(":")[0], line.split(":")[1].split("$")
            assert kind == "7"
            raw = hashlib.pbkdf2_hmac("sha512", self.passwords()[user].encode(), base64.b64decode(salt), int(rounds))
            found += [user] if raw == base64.b64decode(digest) else []
        return sorted(found)


def without_the_first_user(computer: Computer) -> dict[str, str]:
    """As a version before left it, whose package had one user less. Returns the passwords of the others."""
    assert computer.install()
    kept = computer.passwords()
    new = computer.users[0]
    del kept[new]
    (computer.folder / "etc/feltd/mqtt" / new).unlink()
    passwd = computer.folder / "etc/mosquitto/feltd.passwd"
    passwd.write_text("".join(line for line in passwd.read_text().splitlines(keepends=True) if new not in line))
    shutil.copy(passwd, computer.folder / "loaded")
    return kept


@pytest.mark.system
@pytest.mark.skipif(not shutil.which("mosquitto_passwd"), reason="needs mosquitto's tools")
@pytest.mark.parametrize(
    ("users", "upgrade"),
    [(at_length(["edge"], [r"\w+"]), False), (at_length(["edge", "maintenance"], [r"\w+"]), True)],
    ids=["first", "upgrade"],
)
def test_the_broker_knows_every_password_after_an_installation_that_was_killed(
    tmp_path: Path, users: list[str], upgrade: bool
) -> None:
    """In an upgrade one user is new; the others keep their passwords."""
    computer = Computer(tmp_path / "computer", users)
    kept = without_the_first_user(computer) if upgrade else {}
    shutil.copytree(computer.folder, tmp_path / "before")
    at, ended = 0, False
    while not ended:
        at += 1
        shutil.rmtree(computer.folder)
        shutil.copytree(tmp_path / "before", computer.folder)
        ended = computer.install(str(at))
        assert computer.install()
        assert computer.accepted() == sorted(computer.users), f"killed before command {at}"
        assert kept.items() <= computer.passwords().items()
        left = {one.name for one in (computer.folder / "etc").rglob("*") if one.is_file()}
        assert left == {*computer.users, "feltd.passwd", "feltd.acl", "feltd.conf", ".feltd.conf.md5", *KEYS}
        assert computer.broker.read_bytes() == computer.shipped.read_bytes()
    assert at > 20


def mac_keys(computer: Computer) -> dict[str, str]:
    """The files of the keys by which events and verdicts are proven."""
    folder = computer.folder / "etc/feltd"
    names = ("*mac.key", "*mac/*.key")
    return {str(path.relative_to(folder)): path.read_text() for name in names for path in folder.glob(name)}


def test_an_upgrade_makes_the_keys_that_a_configuration_lacks_and_keeps_those_that_are_there(tmp_path: Path) -> None:
    computer = Computer(tmp_path / "computer", ["none"])
    assert computer.install()
    assert mac_keys(computer) == {}, "without a configuration no edge has a name: `feltd init` makes them"
    (computer.folder / "etc/feltd/feltd.toml").write_text('[site]\nname = "lisboa"\n[edge]\nname = "edge-7"\n')
    assert computer.install()
    made = mac_keys(computer)
    edge, rules = made["edge-mac.key"], made["rules-mac.key"]
    assert made == {
        **dict.fromkeys(("edge-mac.key", "mac/edge-7.key", "jackpots-mac/edge-7.key"), edge),
        **dict.fromkeys(("rules-mac.key", "jackpots-verdict-mac/lisboa.key"), rules),
    }
    assert edge != rules
    (computer.folder / "etc/feltd/jackpots-mac/edge-7.key").unlink()
    assert computer.install()
    assert mac_keys(computer) == made


def test_a_configuration_with_a_mistake_is_named_and_stops_no_installation(tmp_path: Path) -> None:
    computer = Computer(tmp_path / "computer", ["none"])
    (computer.folder / "etc/feltd").mkdir()
    (computer.folder / "etc/feltd/feltd.toml").write_text("[site\n")
    assert computer.install()
    assert mac_keys(computer) == {}


def test_an_upgrade_brings_new_settings_of_the_broker_where_nobody_edited_them(tmp_path: Path) -> None:
    computer = Computer(tmp_path / "computer", ["none"])
    assert computer.install()
    assert computer.broker.read_bytes() == computer.shipped.read_bytes()
    site = computer.broker.with_name("site.conf")
    site.write_text("listener 8883\n")
    computer.shipped.write_text("# of the next version\n")
    assert computer.install()
    assert computer.broker.read_text() == "# of the next version\n"
    assert site.read_text() == "listener 8883\n"


@pytest.mark.parametrize("conffile", [False, True], ids=["ours", "conffile of the version before"])
@pytest.mark.parametrize("edited", ["listener 8883\n", None], ids=["edited", "removed"])
def test_an_upgrade_leaves_edited_settings_of_the_broker_as_they_are(
    tmp_path: Path, edited: str | None, conffile: bool
) -> None:
    """The broker starts with them as before; no question stops the services."""
    computer = Computer(tmp_path / "computer", ["none"])
    if conffile:
        line = f" {computer.broker} {hashlib.md5(b'as it was installed').hexdigest()} obsolete\n"
        (computer.folder / "conffiles").write_text(line)
    else:
        assert computer.install()
    computer.broker.unlink(missing_ok=True)
    if edited is not None:
        computer.broker.write_text(edited)
    computer.shipped.write_text("# of the next version\n")
    for _ in range(2):
        assert computer.install()
        assert (computer.broker.read_text() if computer.broker.exists() else None) == edited


def test_an_unedited_conffile_of_the_version_before_is_replaced(tmp_path: Path) -> None:
    computer = Computer(tmp_path / "computer", ["none"])
    computer.broker.write_text("as it was installed")
    line = f" {computer.broker} {hashlib.md5(b'as it was installed').hexdigest()} obsolete\n"
    (computer.folder / "conffiles").write_text(f" /etc/other {'0' * 32}\n{line}")
    assert computer.install()
    assert computer.broker.read_bytes() == computer.shipped.read_bytes()


def test_no_file_of_the_package_is_a_conffile_of_the_broker() -> None:
    """dpkg would ask what to do with one that the site edited, while the services are stopped."""
    rules = (ROOT / "debian/rules").read_text(encoding="utf-8") + (ROOT / "debian/feltd.install").read_text(
        encoding="utf-8"
    )
    assert not re.search(r"(debian/feltd/| )etc/", rules)
