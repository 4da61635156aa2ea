"""The deployment files: systemd, udev and mosquitto take them, and they say what they must."""

import asyncio
import contextlib
import functools
import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import msgspec
import pytest
from helpers import PATIENCE
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion
from structlog.testing import capture_logs

from daemon.cli.access_list import access_list
from daemon.config.model import KEYS_BESIDE, load
from daemon.journal.signing import make_key
from daemon.read_model import SHOWN
from daemon.table_requests import SOCKET
from daemon.virtual_clock import JumpingLoop
from protocols.contract.events import EVENT_TYPES
from protocols.contract.topics import device_topic
from simulators.devices.compare import Account
from simulators.lab import virtual_time
from simulators.lab.bench.spine import NICE
from simulators.lab.broker import free_port
from simulators.lab.pit import SITE, Pit
from simulators.lab.tools.schema import asyncapi
from simulators.tables.blackjack import BlackjackTable

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "systemd"
INSTALL = ROOT / "docs/how-to/install.md"
EXAMPLE_FILE = FOLDER / "feltd.toml"
UNITS = ("feltd-edge.service", "feltd-rules.service", "feltd-console.service")
ALL_UNITS = (*UNITS, "feltd-jackpots.service")
SHARES = ("Nice", "CPUWeight", "IOWeight")
"""With the one of a site that has jackpots, which the package does not start by itself."""
PARTS = tuple(name.removeprefix("feltd-").removesuffix(".service") for name in ALL_UNITS)
PROGRAM = "/usr/bin/feltd"
POSTINST = ROOT / "debian/feltd.postinst"
SEARCH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

# As Debian 12 ships it: the paths stand here, so that the file in conf.d must not name them again.
DEBIAN_MOSQUITTO = """\
pid_file {0}/mosquitto.pid
persistence true
persistence_location {0}/
log_dest file {0}/mosquitto.log
include_dir {0}/conf.d
"""


def program(name: str) -> str:
    """Where `name` is installed; skips the test where it is not."""
    found = shutil.which(name, path=SEARCH)
    if found is None:
        pytest.skip(f"no {name} on this computer")
    return found


def run(*command: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


# ---- units


def unit(name: str) -> dict[str, dict[str, list[str]]]:
    """Sections to keys to all their values, in order."""
    sections: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            assert line in ("[Unit]", "[Service]", "[Install]"), line
            section = sections.setdefault(line.strip("[]"), {})
            continue
        key, equals, value = line.partition("=")
        assert equals, line
        assert key.isalpha(), line
        section.setdefault(key, []).append(value)
    return sections


@pytest.mark.parametrize("name", ALL_UNITS)
def test_a_unit_lives_for_ever_and_may_do_little(name: str) -> None:
    sections = unit(name)
    service = {key: values[-1] for key, values in sections["Service"].items()}
    verb = name.removeprefix("feltd-").removesuffix(".service")
    assert service["ExecStart"] == f"{PROGRAM} {verb} -c /etc/feltd/feltd.toml"
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) > 0
    assert (service["Restart"], service["RestartSec"]) == ("always", "5")
    assert sections["Unit"]["StartLimitIntervalSec"] == ["0"]
    assert "mosquitto.service" in sections["Unit"]["Wants"]
    assert "mosquitto.service" in sections["Unit"]["After"][0].split()
    assert service["User"] == service["Group"] == f"feltd-{verb}"
    assert "feltd" in service["SupplementaryGroups"].split()  # reads the configuration
    assert service["StateDirectory"] == f"feltd/{verb}"
    assert (service["StateDirectoryMode"], service["UMask"]) == ("0700", "0077")
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert service["DevicePolicy"] == "closed"
    assert "MemoryMax" in service
    assert sections["Install"]["WantedBy"] == ["multi-user.target"]


def test_what_a_dealer_waits_for_comes_before_pages_and_reports() -> None:
    shares = {name: tuple(unit(name)["Service"].get(key, ["0"])[-1] for key in SHARES) for name in ALL_UNITS}
    first = (str(NICE), "400", "400")
    assert shares.pop("feltd-console.service") == ("0", "50", "50")
    assert set(shares.values()) == {first}
    assert tuple(unit("mosquitto-priority.conf")["Service"][key][-1] for key in SHARES) == first


@pytest.mark.parametrize("name", ALL_UNITS)
def test_a_start_without_a_configuration_fails(name: str) -> None:
    """A condition would skip the start, and the command would succeed."""
    start = unit(name)["Unit"]
    assert start["AssertPathExists"] == ["/etc/feltd/feltd.toml"]
    assert not any(key.startswith("Condition") for key in start)


def test_only_the_edge_reaches_devices() -> None:
    edge, *others = (unit(name)["Service"] for name in ALL_UNITS)
    assert edge["SupplementaryGroups"] == ["feltd dialout"]
    assert {"char-ttyS rw", "char-ttyUSB rw", "char-ttyACM rw"} <= set(edge["DeviceAllow"])
    assert "PrivateUsers" not in edge  # it would turn dialout into nobody
    for other in others:
        assert other["PrivateDevices"] == ["yes"]
        assert "DeviceAllow" not in other
    rules, console, jackpots = others
    assert jackpots["SupplementaryGroups"] == ["feltd"]
    assert rules["SupplementaryGroups"] == ["feltd"]
    assert "PrivateUsers" not in console  # every user at the other end of its sockets would be nobody
    # To read what the units said; no device is that group's.
    assert console["SupplementaryGroups"] == ["feltd systemd-journal"]


def test_the_state_stands_where_the_configuration_looks_for_it() -> None:
    from daemon.config.model import Console, Edge, Jackpots, Rules

    journals = (Edge(name="e").journal, Rules().journal, Console().journal, Jackpots().journal)
    for name, journal in zip(ALL_UNITS, journals, strict=True):
        assert Path(journal).parent == Path("/var/lib", unit(name)["Service"]["StateDirectory"][0])


@pytest.mark.parametrize("name", ALL_UNITS)
def test_a_unit_sees_no_password_of_another_part(name: str) -> None:
    """Whatever the rights of the files are. One that is not there stops no unit."""
    made = re.findall(r"(?m)^    password (\S+)", POSTINST.read_text(encoding="utf-8"))
    assert made == [*USERS, FORGETTER]
    config = tomllib.loads((FOLDER / "feltd.toml").read_text(encoding="utf-8"))
    part = name.removeprefix("feltd-").removesuffix(".service")
    own = config[part] if "username" in config[part] else config["mqtt"]
    assert own["username"] == part
    hidden = [path for line in unit(name)["Service"]["InaccessiblePaths"] for path in line.split()]
    passwords = [path for path in hidden if path.startswith("-/etc/feltd/mqtt/")]
    assert sorted(passwords) == sorted(f"-/etc/feltd/mqtt/{user}" for user in USERS if user != part)
    keys = {
        "edge": {"edge-mac.key"},
        "rules": {"mac", "rules-mac.key"},
        "console": set(),
        "jackpots": {"jackpots-mac", "jackpots-verdict-mac"},
    }
    every = {place for _, _, place in KEYS_BESIDE}
    assert set(hidden) - set(passwords) == {f"-/etc/feltd/{place}" for place in every - keys[part]}
    assert {"/etc/feltd/mac", "/etc/feltd/edge-mac.key"} <= set(re.findall(r'"(/etc[^"]+)"', EXAMPLE_FILE.read_text()))
    assert f"-{own['password_file']}" not in hidden


@pytest.mark.parametrize("name", ALL_UNITS)
def test_systemd_takes_the_unit(name: str, tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    text = (FOLDER / name).read_text(encoding="utf-8")
    here = tmp_path / name
    here.write_text(text.replace(PROGRAM, "/bin/true"), encoding="utf-8")
    done = run(analyze, "verify", "--man=no", here)
    complaints = [line for line in done.stderr.splitlines() if name in line]
    assert (done.returncode, complaints) == (0, [])
    # The check itself: a misspelt key is only a warning to systemd, and the sandbox would be open.
    here.write_text(here.read_text(encoding="utf-8").replace("ProtectSystem", "ProtectSistem"), encoding="utf-8")
    assert "ProtectSistem" in run(analyze, "verify", "--man=no", here).stderr


@pytest.mark.parametrize(
    ("name", "threshold"), [(UNITS[0], "15"), (UNITS[1], "12"), (UNITS[2], "15"), (ALL_UNITS[3], "15")]
)
def test_systemd_calls_the_sandbox_tight(name: str, threshold: str) -> None:
    done = run(
        program("systemd-analyze"),
        "security",
        "--no-pager",
        "--offline=true",
        f"--threshold={threshold}",
        FOLDER / name,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_sysusers_makes_a_user_for_each_unit(tmp_path: Path) -> None:
    """And a group, which reads the configuration: no user is another's member, none is the group's own."""
    sysusers = program("systemd-sysusers")
    folder = tmp_path / "etc/sysusers.d"
    folder.mkdir(parents=True)
    shutil.copy(FOLDER / "feltd.sysusers.conf", folder / "feltd.conf")
    done = run(sysusers, f"--root={tmp_path}", "--dry-run")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in (folder / "feltd.conf").read_text(encoding="utf-8").splitlines()]
    users = [unit(name)["Service"]["User"][0] for name in ALL_UNITS]
    assert len(set(users)) == 4
    assert [line[1] for line in lines if line[0] == "u"] == users
    assert [line[1] for line in lines if line[0] == "g"] == ["feltd"]
    assert [line[1:] for line in lines if line[0] == "m"] == [[user, "feltd"] for user in users]
    for user in users:
        assert user in done.stdout + done.stderr


def test_each_process_gets_its_own_passwords_and_keys() -> None:
    """The package makes the passwords; the page's block for the keys is run without its effects."""
    made = {
        f"/etc/feltd/mqtt/{user}": f"root:{group} {mode}"
        for user, group, mode in re.findall(
            r"(?m)^    password (\S+) (\S+) (\d+)$", POSTINST.read_text(encoding="utf-8")
        )
    }
    blocks = re.findall(r"```sh\n(.*?)```", INSTALL.read_text(encoding="utf-8"), re.DOTALL)
    [keys_block] = [block for block in blocks if "-key.pem" in block]
    done = run(program("bash"), "-c", 'sudo() { echo "$*" >&2; }\n' + keys_block, stdin="")
    for line in done.stderr.splitlines():
        if found := re.match(r"chown (\S+) (\S+)", line):
            made[found[2]] = f"{found[1]} 600"
    assert made == {
        **{f"/etc/feltd/mqtt/{part}": f"root:feltd-{part} 640" for part in PARTS},
        **{f"/etc/feltd/mqtt/{user}": "root:root 640" for user in ("reader", "display")},
        "/etc/feltd/mqtt/maintenance": "root:root 600",
        **{f"/etc/feltd/{part}-key.pem": f"feltd-{part}:feltd-{part} 600" for part in PARTS},
    }
    example = (FOLDER / "feltd.toml").read_text(encoding="utf-8")
    keys = dict(re.findall(r'^# journal_key = "(\S+)" #.* owner (feltd-\w+)', example, re.MULTILINE))
    assert keys == {f"/etc/feltd/{part}-key.pem": f"feltd-{part}" for part in PARTS}


def test_a_purge_removes_every_password_that_the_package_made() -> None:
    made = re.findall(r"(?m)^    password (\S+)", POSTINST.read_text(encoding="utf-8"))
    script = (ROOT / "debian/feltd.postrm").read_text(encoding="utf-8")
    removed, named = re.findall(r"(?m)^    for user in (.*); do$", script)
    assert removed.split() == named.split() == made
    assert all(f"/var/lib/feltd/{part}" in script for part in PARTS)


def test_the_first_line_of_the_example_counts_its_tables() -> None:
    text = EXAMPLE_FILE.read_text(encoding="utf-8")
    assert f": {len(tomllib.loads(text)['table'])} tables." in text.splitlines()[0]


def test_the_example_has_a_linked_jackpot_with_a_sign() -> None:
    config = load(EXAMPLE_FILE)
    assert any(len(pool.tables) > 1 and pool.signs for pool in config.jackpot)
    assert [config.jackpots.username, config.jackpots.password_file] == ["jackpots", "/etc/feltd/mqtt/jackpots"]


# ---- users of their own

OWN = """
[site]
name = "lisboa"
[mqtt]
port = 1
[edge]
name = "edge-7"
journal = "{0}/lib/edge/journal.db"
journal_key = "{0}/etc/edge-key.pem"
[rules]
insecure = true
journal = "{0}/lib/rules/journal.db"
journal_key = "{0}/etc/rules-key.pem"
[console]
port = 0
store = "{0}/lib/console/console.db"
journal = "{0}/lib/console/journal.db"
journal_key = "{0}/etc/console-key.pem"
[jackpots]
insecure = true
journal = "{0}/lib/jackpots/journal.db"
journal_key = "{0}/etc/jackpots-key.pem"
[[table]]
name = "x-1"
[[jackpot]]
name = "hall"
tables = ["x-1"]
counts = "devices"
wins = "devices"
seed = 0
visible = "0.5"
"""
UIDS = {"edge": 61001, "rules": 61002, "console": 61003, "jackpots": 61004}
GROUP = 61000
# As the unit starts it: the program, told that it is to run until it says that it is ready.
READY = """
import os, socket, subprocess, sys
where = sys.argv[1]
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
    told.bind(where)
    told.settimeout(60)
    process = subprocess.Popen(sys.argv[2:], env={**os.environ, "NOTIFY_SOCKET": where})
    try:
        assert b"READY=1" in told.recv(100)
    finally:
        process.terminate()
        process.wait(60)
"""
TRIED = """
import os, sys
for path in sys.argv[1:]:
    try:
        os.scandir(path).close() if os.path.isdir(path) else open(path, "rb").close()
    except PermissionError:
        print("denied", path)
    else:
        print("opened", path)
"""


@functools.cache
def python_of_others() -> str:
    """An interpreter with what we need that another user may run; skips the test where there is none.

    Where ours stands in somebody's home, the system's of the same version does.
    """
    if os.geteuid() != 0:
        pytest.skip("only root becomes other users")
    for python in (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"):
        with contextlib.suppress(OSError):
            if not as_user("console", "-c", "import daemon.cli, click, msgspec", python=python).returncode:
                return python
    pytest.skip(f"no other user may run {sys.executable} or read {ROOT}")


@pytest.fixture
def installed() -> Iterator[Path]:
    """Folders, keys and configuration with the owners and rights that the page and the units give them."""
    python_of_others()
    root = Path(tempfile.mkdtemp(prefix="feltd-users-"))
    try:
        root.chmod(0o755)
        for folder, group in (("etc", GROUP), ("lib", 0)):
            (root / folder).mkdir()
            os.chown(root / folder, 0, group)
            (root / folder).chmod(0o750 if folder == "etc" else 0o755)
        (root / "etc/feltd.toml").write_text(OWN.format(root), encoding="utf-8")
        os.chown(root / "etc/feltd.toml", 0, GROUP)
        (root / "etc/feltd.toml").chmod(0o640)
        for part, uid in UIDS.items():
            (root / "lib" / part).mkdir()
            os.chown(root / "lib" / part, uid, uid)
            (root / "lib" / part).chmod(int(unit(f"feltd-{part}.service")["Service"]["StateDirectoryMode"][0], 8))
            make_key(root / f"etc/{part}-key.pem")
            os.chown(root / f"etc/{part}-key.pem", uid, uid)
        yield root
    finally:
        shutil.rmtree(root)


def as_user(part: str, *words: str | Path, python: str = "") -> subprocess.CompletedProcess[str]:
    """A command of the interpreter as the user of a part, as its unit has it."""
    uid = UIDS[part]
    umask = int(unit(f"feltd-{part}.service")["Service"]["UMask"][0], 8)
    return subprocess.run(
        [python or python_of_others(), *words], cwd="/", user=uid, group=uid, extra_groups=[GROUP], umask=umask,
        env={"PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_each_process_starts_as_its_own_user_and_reads_nothing_of_the_others(installed: Path) -> None:
    """Real processes of real users: each says that it is ready, then tries to open what belongs to the others."""
    for part in UIDS:
        where = installed / "lib" / part / "notify"
        command: list[str | Path] = [python_of_others(), "-m", "daemon.cli", part, "-c", installed / "etc/feltd.toml"]
        done = as_user(part, "-c", READY, where, *command)
        assert done.returncode == 0, (part, done.stderr)
    files = {part: sorted((installed / "lib" / part).iterdir()) for part in UIDS}
    for part, uid in UIDS.items():
        assert {"journal.db", "journal.db-signed", "journal.db-lock"} <= {one.name for one in files[part]}
        assert {one.stat().st_uid for one in files[part]} == {uid}
        own = [installed / f"etc/{part}-key.pem", installed / "lib" / part, installed / "etc/feltd.toml"]
        others = [
            path
            for other in UIDS
            if other != part
            for path in (installed / f"etc/{other}-key.pem", installed / "lib" / other, *files[other])
        ]
        done = as_user(part, "-c", TRIED, *own, *others)
        assert done.stdout.splitlines() == [f"opened {one}" for one in own] + [f"denied {one}" for one in others]


def test_a_journal_signed_by_its_own_process_is_verified_by_its_own_key(installed: Path) -> None:
    config = installed / "etc/feltd.toml"
    for part in UIDS:
        path, key = installed / f"lib/{part}/journal.db", installed / f"etc/{part}-key.pem"
        code = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from daemon.config.model import Keeping
from daemon.journal.retention import take_up
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
journal = Journal(Path(sys.argv[1]))
take_up(journal, Keeping(key=sys.argv[2]))
journal.append([Entry("t-1", "d", "x", datetime.now(UTC), b"{}")])
journal.close()
"""
        done = as_user(part, "-c", code, path, key)
        assert done.returncode == 0, done.stderr
    done = run(sys.executable, "-m", "daemon.cli", "journal", "verify", "-c", config)  # as root
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("1 checkpoints, 1 signatures checked") == 4
    refused = as_user("console", "-m", "daemon.cli", "journal", "verify", "-c", config)
    assert refused.returncode == 2
    assert "Permission denied; run this with sudo, or as a user who may" in refused.stderr


def test_root_leaves_journal_files_to_their_owner(installed: Path) -> None:
    """`sudo feltd journal accept`, after everything beside the journal was lost; then its process starts."""
    part, config = "edge", installed / "etc/feltd.toml"
    command = [python_of_others(), "-m", "daemon.cli", part, "-c", str(config)]
    where = installed / "lib" / part / "notify"
    assert as_user(part, "-c", READY, where, *command).returncode == 0
    where.unlink()
    journal = installed / "lib" / part / "journal.db"
    for name in ("lock", "readers", "signed"):
        journal.with_name(f"journal.db-{name}").unlink()
    done = run(sys.executable, "-m", "daemon.cli", "journal", "accept", journal)
    assert done.returncode == 0, done.stderr
    assert {one.stat().st_uid for one in journal.parent.iterdir()} == {UIDS[part]}
    done = as_user(part, "-c", READY, where, *command)
    assert done.returncode == 0, done.stderr


# ---- udev

_RULE_PART = re.compile(r'([A-Z]+)(?:\{([A-Za-z_/]+)\})?(==|!=|=|\+=|:=)"([^"]*)"')
MATCHES = {"ACTION", "KERNEL", "SUBSYSTEM", "DRIVER", "SUBSYSTEMS", "DRIVERS", "ATTRS"}
ASSIGNMENTS = {"GROUP", "MODE", "GOTO", "LABEL"}
EITHER = {"ATTR", "ENV"}


def udev_rules() -> Iterator[list[tuple[str, str, str, str]]]:
    """Each rule as its (key, name, operator, value) parts."""
    for line in (FOLDER / "60-feltd.rules").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            parts = line.split(", ")
            found = [_RULE_PART.fullmatch(part) for part in parts]
            assert all(found), line
            yield [(one[1], one[2] or "", one[3], one[4]) for one in found if one]


def test_udev_rules_are_well_formed() -> None:
    labels: set[str] = set()
    jumps: set[str] = set()
    for rule in udev_rules():
        for key, name, operator, value in rule:
            assert value
            assert key in MATCHES | ASSIGNMENTS | EITHER
            assert (key in MATCHES) <= (operator in {"==", "!="}), key
            assert (key in ASSIGNMENTS) <= (operator == "="), key
            assert (key in {"ATTRS", "ATTR", "ENV"}) == bool(name), key
            if key == "GOTO":
                jumps.add(value)
            if key == "LABEL":
                labels.add(value)
    assert jumps == labels


def test_modem_manager_stays_off_serial_adapters_and_keyboards_stay_private() -> None:
    rules = list(udev_rules())
    for kernel in ("ttyUSB[0-9]*", "ttyACM[0-9]*", "ttyS[0-9]*"):
        (rule,) = [rule for rule in rules if ("KERNEL", "", "==", kernel) in rule]
        assert ("ENV", "ID_MM_DEVICE_IGNORE", "=", "1") in rule
        assert ("GROUP", "", "=", "dialout") in rule
    for rule in rules:
        if ("SUBSYSTEM", "", "==", "hidraw") in rule:
            assert any(key == "ATTRS" and name == "idVendor" for key, name, _, _ in rule)


def test_udev_takes_the_rules() -> None:
    udevadm = program("udevadm")
    if "verify" not in run(udevadm, "--help").stdout:
        pytest.skip("this udevadm cannot verify (systemd before 254)")
    done = run(udevadm, "verify", FOLDER / "60-feltd.rules")
    assert done.returncode == 0, done.stdout + done.stderr


# ---- mosquitto


USERS = ("edge", "rules", "console", "jackpots", "reader", "display")
# `feltd forget`: its password is for root alone, and no unit may read it.
FORGETTER = "maintenance"
# Of the test alone: hears and says everything.
JUDGE = "judge"
# Seconds that mosquitto_sub waits.
WAIT = f"{PATIENCE:.0f}"


def password(user: str) -> str:
    return f"{user} opens"


class Broker:
    """Debian's mosquitto with our files where they belong, on a free port."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port(self)
        self._log = folder / "mosquitto.log"
        self._main = folder / "main.conf"
        self._main.write_text(DEBIAN_MOSQUITTO.format(folder) + f"user {getpass.getuser()}\n", encoding="utf-8")
        ours = (FOLDER / "mosquitto-feltd.conf").read_text(encoding="utf-8")
        assert "\nlistener 1883 127.0.0.1\n" in ours
        (folder / "conf.d").mkdir()
        ours = ours.replace("listener 1883 ", f"listener {self.port} ").replace("/etc/mosquitto/", f"{folder}/")
        (folder / "conf.d/feltd.conf").write_text(ours, encoding="utf-8")
        self._rights = folder / "feltd.acl"
        self.grant((FOLDER / "mosquitto-feltd.acl").read_text(encoding="utf-8"))
        users = "".join(f"{user}:{password(user)}\n" for user in (*USERS, FORGETTER, JUDGE))
        self._write(folder / "feltd.passwd", users)
        done = run(program("mosquitto_passwd"), "-U", folder / "feltd.passwd")
        assert done.returncode == 0, done.stderr
        for user in (*USERS, JUDGE):
            (folder / user).write_text(password(user) + "\n", encoding="utf-8")

    def grant(self, rights: str) -> None:
        """Instead of the list of the example."""
        self._write(self._rights, f"{rights}\nuser {JUDGE}\ntopic readwrite #\n")

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [program("mosquitto"), "-c", self._main], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
        raise AssertionError(self._log.read_text(encoding="utf-8"))

    def __exit__(self, *_: object) -> None:
        while self._process.poll() is None:  # mosquitto forgets a signal between its listening and its loop
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2.0)

    def complaints(self) -> list[str]:
        """What it logged, other than who came and went; whole only after its end."""
        words = ("Error", "Warning", "recommended", "deprecated", "Unknown")
        lines = self._log.read_text(encoding="utf-8").splitlines()
        assert lines
        return [line for line in lines if any(word in line for word in words) and "run as root" not in line]


@pytest.mark.system
def test_mosquitto_takes_the_file_and_keeps_more_than_its_usual_thousand(tmp_path: Path) -> None:
    sub, pub = program("mosquitto_sub"), program("mosquitto_pub")
    lines = [f"event {n}" for n in range(5000)]
    with Broker(tmp_path) as broker:
        port = str(broker.port)
        me = ["-u", JUDGE, "-P", password(JUDGE)]
        reader = [sub, "-p", port, *me, "-c", "-i", "reader", "-q", "1", "-t", "felt/1/#"]
        assert run(*reader, "-E").returncode == 0  # subscribes and goes away
        sent = run(pub, "-p", port, *me, "-q", "1", "-t", "felt/1/lisboa/x", "-l", stdin="\n".join(lines) + "\n")
        assert sent.returncode == 0, sent.stderr
        read = run(*reader, "-C", str(len(lines)), "-W", WAIT)
        assert read.stdout.splitlines() == lines
    assert broker.complaints() == []


@pytest.mark.system
def test_retained_states_outlive_the_broker(tmp_path: Path) -> None:
    sub, pub = program("mosquitto_sub"), program("mosquitto_pub")
    broker = Broker(tmp_path)
    me = ["-p", str(broker.port), "-u", JUDGE, "-P", password(JUDGE)]
    with broker:
        assert run(pub, *me, "-q", "1", "-r", "-t", "felt/1/a", "-m", "here").returncode == 0
    with broker:
        assert run(sub, *me, "-t", "felt/1/#", "-C", "1", "-W", WAIT).stdout == "here\n"


@pytest.mark.system
def test_only_this_computer_reaches_the_broker(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        heard = {
            line.split()[1]
            for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
            if table.exists()
            for line in table.read_text(encoding="ascii").splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].endswith(f":{broker.port:04X}")
        }
    assert heard == {f"0100007F:{broker.port:04X}"}


# ---- who may read and write what

EXAMPLE = {
    "site": "lisboa",
    "table": "bac-12",
    "terminal": "t-1",
    "device": "shoe-1",
    "edge": "edge-7",
    "command": "agitate",
    "alert": "shoe-1-shoe-misscan",
    "pool": "red",
    "entry": "won",
    "order": "pay",
}
# Of each channel of the tree, at a table and an edge of the configuration: who writes there, and who reads. Whoever
# retains a document reads it, too: it puts right what another wrote there.
RIGHTS = {
    "alert": ("edge", "edge console reader display"),
    "command": ("console", "edge console reader"),
    "commandReply": ("edge", "console reader"),
    "deviceAvailability": ("edge", "edge console reader display"),
    "deviceEvent": ("edge", "rules console reader"),
    "deviceMeta": ("edge", "edge console reader"),
    "deviceState": ("edge", "edge console reader"),
    "edgeAvailability": ("edge", "edge rules jackpots console reader display"),
    "edgeHealth": ("edge", "edge rules console reader"),
    "edgeAlive": ("edge", "edge rules console reader"),
    "edgeHead": ("edge", "edge rules console reader"),
    "edgeInfo": ("edge", "edge rules console reader"),
    **dict.fromkeys(("jackpotEvent", "jackpotReply", "jackpotWinsPage"), ("jackpots", "console reader")),
    **dict.fromkeys(("jackpotLevel", "jackpotBooks"), ("jackpots", "jackpots console reader")),
    "jackpotOwner": ("jackpots", "edge jackpots console reader"),
    **dict.fromkeys(("jackpotOrder", "jackpotReplay", "jackpotWins"), ("console", "jackpots")),
    "jackpotReplayAnswer": ("jackpots", "console reader"),
    "replay": ("rules", "edge"),
    "replayAnswer": ("edge", "rules"),
    "roundEvent": ("rules", "jackpots console reader"),
    "roundReplay": ("jackpots console reader", "rules console reader"),
    "roundReplayAnswer": ("rules", "jackpots console reader"),
    "roundResult": ("rules", "rules console reader display"),
    "roundState": ("rules", "edge rules console reader display"),
    "trace": ("edge", "console"),
    "wager": ("", "rules"),  # this table has no terminals
    "wagerAnswer": ("rules", "console"),
}
CARDS = frozenset(name for name, kind in EVENT_TYPES.items() if "[SHDC]" in str(msgspec.json.schema(kind)))
# Of a version to come: nobody knows what it tells.
NEWER = "card.of_another_version"
# The last that is said: everybody may read it.
END = "felt/1/lisboa/edge/end/availability"


# Where others are concerned that are no part of the configuration: nobody writes, but rules and edges at their own.
ELSEWHERE = (
    EXAMPLE | {"site": "palacio"},
    EXAMPLE | {"edge": "edge-8", "table": "bac-13", "alert": "shoe-1-shoe-misscan", "pool": "blue"},
)
OF_RULES = EXAMPLE | {"edge": "rules"}
ALERTS_OF_RULES = (
    "round-suspended",
    "results-disagree",
    "rules-events-forged",
    "rules-events-conflict",
    "rules-state-forged",
    "rules-journal-room",
    "rules-backbone",
)
FORGETS = (
    *(
        "alert",
        "deviceAvailability",
        "deviceMeta",
        "deviceState",
        "edgeAlive",
        "edgeAvailability",
        "edgeHead",
        "edgeHealth",
        "edgeInfo",
    ),
    *("roundResult", "roundState"),
)


def tree() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Every topic of the tree, each event and verdict by its type: who writes there, and who reads."""
    topics = {}
    for name, channel in asyncapi("0")["channels"].items():
        writers, readers = (frozenset(words.split()) for words in RIGHTS[name])
        if name in FORGETS:
            writers |= {FORGETTER}
        if name in ("edgeAlive", "edgeAvailability", "edgeHead", "edgeHealth", "edgeInfo", "deviceMeta", "roundState"):
            readers |= {FORGETTER}
        types = [*channel["messages"]] if "{type}" in channel["address"] else [""]
        for type_ in [*types, NEWER] if name == "deviceEvent" else types:
            rules_alone = name == "deviceEvent" and type_ not in SHOWN
            topic = channel["address"].format(**EXAMPLE, type=type_)
            topics[topic] = (writers, frozenset({"rules"}) if rules_alone else readers)
            if "{edge}" in channel["address"]:
                of_rules = readers if name == "edgeAvailability" else readers - {"edge"}
                topics[channel["address"].format(**OF_RULES)] = (writers - {"edge"} | {"rules"}, of_rules)
            # At another table or edge nobody writes but who may at any; at another site nobody does anything.
            [nowhere, another] = (channel["address"].format(**place, type=type_) for place in ELSEWHERE)
            topics[nowhere] = (frozenset(), frozenset())
            readers_there = frozenset({"console", "reader", "display", FORGETTER}) & topics[topic][1]
            if name in ("edgeAvailability", "deviceMeta", "jackpotOwner"):
                readers_there |= {"edge"}
            if name == "edgeAvailability":
                readers_there |= {"jackpots"}
            if name in ("edgeAlive", "edgeAvailability", "edgeHead", "edgeHealth", "edgeInfo", "roundState"):
                readers_there |= {"rules"}
            topics[another] = (writers - {"edge", "rules", "jackpots"}, readers_there)
    for alert in ALERTS_OF_RULES:
        topics[f"felt/1/lisboa/table/bac-12/alert/{alert}"] = (
            frozenset({"rules", FORGETTER}),
            frozenset(RIGHTS["alert"][1].split()) - {"edge"} | {"rules"},
        )
    return topics


def test_the_access_list_is_made_from_the_example() -> None:
    """`feltd acl systemd/feltd.toml > systemd/mosquitto-feltd.acl` after a change of the example or of events."""
    made = access_list([(FOLDER / "feltd.toml", load(FOLDER / "feltd.toml"))])
    assert (FOLDER / "mosquitto-feltd.acl").read_text(encoding="utf-8") == made
    assert "felt/1/+" not in made


@pytest.mark.parametrize("user", ["console", "reader"])
def test_the_access_list_shows_the_events_that_the_console_shows(user: str) -> None:
    """By their types: what tells a card, a hole card or a wager is in no list, nor what a newer edge may tell."""
    text = (FOLDER / "mosquitto-feltd.acl").read_text(encoding="utf-8")
    of_user = text.partition(f"\nuser {user}\n")[2].partition("\nuser ")[0]
    rights = re.findall(r"^topic read (.+)$", of_user, re.MULTILINE)
    place = device_topic("lisboa", "bac-12", "shoe-1", "event/")
    read = {one for one in (*EVENT_TYPES, NEWER) if any(paho.topic_matches_sub(right, place + one) for right in rights)}
    assert read == SHOWN
    assert {"card.drawn", "card.exposed", "deal.corrected"} <= CARDS
    assert not {*CARDS, "hole_card.peeked"} & SHOWN
    assert {"bets.opened", "hand.dispensed", "device.faulted"} <= SHOWN


@pytest.mark.system
def test_a_betting_terminal_writes_on_its_own_topic_alone(tmp_path: Path) -> None:
    sub, pub = program("mosquitto_sub"), program("mosquitto_pub")
    broker, user = Broker(tmp_path), "bets-fan-1-t-1"
    done = run(program("mosquitto_passwd"), "-b", tmp_path / "feltd.passwd", user, password(user))
    assert done.returncode == 0, done.stderr
    with broker:
        wagers = "felt/1/lisboa/table/fan-1/wager"
        judge = ["-p", str(broker.port), "-u", JUDGE, "-P", password(JUDGE), "-c", "-i", "judge", "-q", "1"]
        reader = [sub, *judge, "-t", f"{wagers}/#", "-F", "%t"]
        assert run(*reader, "-E").returncode == 0
        for leaf in ("t-2", "t-2/result", "t-1/result", "t-1"):
            run(
                pub,
                "-p",
                str(broker.port),
                "-u",
                user,
                "-P",
                password(user),
                "-q",
                "1",
                "-t",
                f"{wagers}/{leaf}",
                "-m",
                "x",
            )
        assert run(*reader, "-C", "1", "-W", WAIT).stdout.split() == [f"{wagers}/t-1"]


class Visitor:
    """A user at the broker, who asks for everything and keeps what he gets."""

    def __init__(self, broker: Broker, user: str) -> None:
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        self._client.username_pw_set(user, password(user))
        self._user = user
        self._heard: list[tuple[str, str]] = []
        self._all, self._subscribed = threading.Event(), threading.Event()
        self._client.on_message = self._hear
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        self._ask()

    def _hear(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        if message.topic.endswith("/edge/end/availability"):
            self._all.set()
        else:
            self._heard.append((message.topic, message.payload.decode()))

    def say(self, *topics: str) -> None:
        """His name, on each of them, where he may; returns when the broker has dealt with all."""
        for topic in topics:
            self._client.publish(topic, self._user)
        self._ask()

    def _ask(self) -> None:
        """For everything; returns when the broker has answered, and so has dealt with all before."""
        self._subscribed.clear()
        self._client.subscribe("#", 1)
        assert self._subscribed.wait(PATIENCE), self._user

    def heard(self) -> list[tuple[str, str]]:
        """Topics and who spoke there, until the end."""
        assert self._all.wait(PATIENCE), self._user
        return self._heard

    def leave(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.mark.system
def test_each_user_writes_and_reads_what_is_his_and_nothing_else(tmp_path: Path) -> None:
    """The whole tree, by whoever asks for all of it; and nobody else has a tree of his own."""
    pub, topics = program("mosquitto_pub"), tree()
    elsewhere = ["$SYS/x", "felt/1/lisboa/x", "felt/2/lisboa/table/bac-12/round/result", "studio/bac-12"]
    with Broker(tmp_path) as broker, contextlib.ExitStack() as over:
        visitors = {user: Visitor(broker, user) for user in (*USERS, FORGETTER, JUDGE)}
        for visitor in visitors.values():
            over.callback(visitor.leave)
        for user in (*USERS, FORGETTER):
            visitors[user].say(*(topic for topic, (writers, _) in topics.items() if user in writers))
            for topic in (*elsewhere, *(topic for topic, (writers, _) in topics.items() if user not in writers)):
                # By a connection of its own: mosquitto 2.0.11 ends that of whoever it refuses to let write.
                run(pub, "-p", str(broker.port), "-u", user, "-P", password(user), "-q", "1", "-t", topic, "-m", user)
        visitors[JUDGE].say(*topics, *elsewhere[1:], END)
        heard = {user: visitor.heard() for user, visitor in visitors.items()}
    assert set(heard[JUDGE]) - {(topic, JUDGE) for topic, _ in heard[JUDGE]} == {
        (topic, user) for topic, (writers, _) in topics.items() for user in writers
    }
    for user in (*USERS, FORGETTER):
        assert {topic for topic, who in heard[user] if who == JUDGE} == {
            topic for topic, (_, readers) in topics.items() if user in readers
        }, user


@pytest.mark.system
def test_broker_requires_a_password(tmp_path: Path) -> None:
    sub = [program("mosquitto_sub"), "-W", WAIT, "-t", "#"]
    with Broker(tmp_path) as broker:
        for who in ([], ["-u", "rules"], ["-u", "rules", "-P", password("reader")]):
            done = run(*sub, "-p", str(broker.port), *who)
            assert "not authorised" in done.stderr.lower(), who


@pytest.mark.system
def test_a_pit_plays_behind_the_access_list_and_a_reader_sees_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edge and rules lack nothing that they need; who asks for everything meanwhile gets rounds and no card."""
    plain = Pit.config

    def config(pit: Pit, port: int, version: str) -> str:
        text = plain(pit, port, version)
        for section, user in (("edge", "edge"), ("rules", "rules"), ("mqtt", JUDGE)):
            users = f'[{section}]\nusername = "{user}"\npassword_file = "{tmp_path / user}"'
            text = text.replace(f"[{section}]", users, 1)
        return text

    async def body(busy: list[Callable[[], bool]]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        async with virtual_time.running_in_virtual_time(pit, busy) as running:
            await pit.deal(running.pace, 6, running.site, loop.utc)
            dealt = pit.dealt()
            running.settling = True
            await virtual_time.wait_for_results(pit, running.site, dealt)

    monkeypatch.setattr(Pit, "config", config)
    monkeypatch.setattr(BlackjackTable, "at_terminals", False)  # its terminals have no user of the broker
    pit = Pit(tmp_path, 1, kinds=("bac", "bj", "cus"), usb=True)
    broker = Broker(tmp_path)
    file = tmp_path / "feltd.toml"
    names = [f"{table}/{device}" for table, one in pit.tables.items() for device in one.devices]
    places = {name: SimpleNamespace(url=f"tcp://127.0.0.1:{n}") for n, name in enumerate(names, 1)}
    with monkeypatch.context() as patch:  # its real places are not known yet
        patch.setattr(pit, "ports", places)
        file.write_text(pit.config(broker.port, "5").replace(JUDGE, "console"), encoding="utf-8")
    broker.grant(access_list([(file, load(file))]))
    with broker:
        monkeypatch.setattr(virtual_time, "Broker", lambda *_, **__: _Standing(broker.port))
        reader = Visitor(broker, "reader")
        with capture_logs() as logs:
            virtual_time.run_in_virtual_time(body)
        judge = Visitor(broker, JUDGE)
        judge.say(END.replace("/lisboa/", f"/{SITE}/"))
        heard = reader.heard()
        reader.leave()
        judge.leave()
    assert [entry for entry in logs if entry["event"] == "broker.lost"] == []
    assert pit.accounts(pit.dealt()) == dict.fromkeys(pit.tables, Account(right=2))
    assert pit.told["bj-1"].count("card.drawn") >= 10
    types = Counter(topic.rpartition("/")[2] for topic, _ in heard if "/event/" in topic)
    assert not set(types) & CARDS
    assert types["resolved"] == 6
    assert types["bets.closed"] >= 6


class _Standing:
    """A broker that is started and ended by somebody else."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.version = "5"

    async def start(self) -> None:
        pass

    async def kill(self) -> None:
        pass


# ---- the page


def test_the_page_names_every_file_and_no_other() -> None:
    page = INSTALL.read_text(encoding="utf-8")
    there = {path.name for path in FOLDER.iterdir() if path.is_file()} - {"README.md"}
    assert there <= set(re.findall(r"`([\w.@-]+\.(?:service|socket|conf|acl|rules|toml))`", page))
    assert set(re.findall(r"systemd/([\w.-]+\.(?:service|conf|acl|rules|toml))", page)) <= there | {"feltd.toml"}


def test_every_block_of_the_page_is_a_shell_script() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", INSTALL.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 8
    for block in blocks:
        done = run(program("bash"), "-n", stdin=block)
        assert (done.returncode, done.stderr) == (0, ""), block


def test_the_package_installs_the_program_that_the_units_start() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert list(scripts) == [Path(PROGRAM).name]
    links = dict(line.split()[::-1] for line in (ROOT / "debian/feltd.links").read_text(encoding="utf-8").splitlines())
    assert links[PROGRAM.lstrip("/")] == "/usr/lib/feltd/bin/feltd"


@pytest.mark.parametrize("name", ["debian/feltd.postinst", "debian/feltd.prerm", "debian/feltd.postrm"])
def test_a_maintainer_script_is_a_shell_script(name: str) -> None:
    done = run(program("sh"), "-n", ROOT / name)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_lists_every_deployment_file() -> None:
    lists = "".join((ROOT / "debian" / name).read_text(encoding="utf-8") for name in ("feltd.install", "rules"))
    there = {path.name for path in FOLDER.iterdir() if path.is_file()} - {"README.md", "mosquitto-feltd.acl"}
    others = there - {*ALL_UNITS, "feltd-change.socket", "feltd-change@.service"}
    assert {name for name in others if f"systemd/{name} " in lists} == others
    assert "systemd/feltd-*.service " in lists
    assert "systemd/feltd-*.socket " in lists


def test_only_the_console_may_ask_for_a_change_of_tables() -> None:
    """It is answered by a command of root, which writes two folders and nothing else."""
    socket = (FOLDER / "feltd-change.socket").read_text(encoding="utf-8").splitlines()
    assert {f"ListenStream={SOCKET}", "SocketUser=root", "SocketGroup=feltd-console", "SocketMode=0660"} <= {*socket}
    service = unit("feltd-change@.service")["Service"]
    assert service["ExecStart"] == [f"{PROGRAM} table answer -c /etc/feltd/feltd.toml"]
    assert (service["ProtectSystem"], service["ReadWritePaths"]) == (["strict"], ["/etc/feltd -/etc/mosquitto"])
    assert service["CapabilityBoundingSet"] == ["CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_KILL CAP_SYS_ADMIN"]
