"""The deployment files: systemd, udev and mosquitto take them, and they say what they must."""

import getpass
import re
import shutil
import socket
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "systemd"
UNITS = ("feltd-edge.service", "feltd-rules.service", "feltd-console.service")
PROGRAM = "/opt/feltd/.venv/bin/feltd"
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
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


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


@pytest.mark.parametrize("name", UNITS)
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
    assert service["User"] == service["Group"] == "feltd"
    assert service["StateDirectory"] == f"feltd/{verb}"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert service["DevicePolicy"] == "closed"
    assert "MemoryMax" in service
    assert sections["Install"]["WantedBy"] == ["multi-user.target"]


def test_only_the_edge_reaches_devices() -> None:
    edge, *others = (unit(name)["Service"] for name in UNITS)
    assert edge["SupplementaryGroups"] == ["dialout"]
    assert {"char-ttyS rw", "char-ttyUSB rw", "char-ttyACM rw"} <= set(edge["DeviceAllow"])
    assert "PrivateUsers" not in edge  # it would turn dialout into nobody
    for other in others:
        assert other["PrivateDevices"] == ["yes"]
        assert not {"SupplementaryGroups", "DeviceAllow"} & set(other)


def test_the_state_stands_where_the_configuration_looks_for_it() -> None:
    from daemon.config import Console, Edge, Rules

    journals = (Edge(name="e").journal, Rules().journal, Console().journal)
    for name, journal in zip(UNITS, journals, strict=True):
        assert Path(journal).parent == Path("/var/lib", unit(name)["Service"]["StateDirectory"][0])


@pytest.mark.parametrize("name", UNITS)
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


@pytest.mark.parametrize(("name", "threshold"), [(UNITS[0], "20"), (UNITS[1], "15"), (UNITS[2], "15")])
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


def test_sysusers_makes_the_user(tmp_path: Path) -> None:
    sysusers = program("systemd-sysusers")
    folder = tmp_path / "etc/sysusers.d"
    folder.mkdir(parents=True)
    shutil.copy(FOLDER / "feltd.sysusers.conf", folder / "feltd.conf")
    done = run(sysusers, f"--root={tmp_path}", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "feltd" in done.stdout + done.stderr
    users = [line for line in (folder / "feltd.conf").read_text(encoding="utf-8").splitlines() if line[:1] == "u"]
    assert [line.split()[1] for line in users] == ["feltd"]


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


class Broker:
    """Debian's mosquitto with our file in its conf.d, on a free port."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._log = folder / "mosquitto.log"
        self._main = folder / "main.conf"
        self._main.write_text(DEBIAN_MOSQUITTO.format(folder) + f"user {getpass.getuser()}\n", encoding="utf-8")
        ours = (FOLDER / "mosquitto-feltd.conf").read_text(encoding="utf-8")
        assert "\nlistener 1883 127.0.0.1\n" in ours
        (folder / "conf.d").mkdir()
        (folder / "conf.d/feltd.conf").write_text(
            ours.replace("listener 1883 ", f"listener {self.port} "), encoding="utf-8"
        )

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
        self._process.terminate()
        self._process.wait(20)

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
        reader = [sub, "-p", port, "-c", "-i", "reader", "-q", "1", "-t", "felt/1/#"]
        assert run(*reader, "-E").returncode == 0  # subscribes and goes away
        sent = run(pub, "-p", port, "-q", "1", "-t", "felt/1/lisboa/x", "-l", stdin="\n".join(lines) + "\n")
        assert sent.returncode == 0, sent.stderr
        read = run(*reader, "-C", str(len(lines)), "-W", "30")
        assert read.stdout.splitlines() == lines
    assert broker.complaints() == []


@pytest.mark.system
def test_retained_states_outlive_the_broker(tmp_path: Path) -> None:
    sub, pub = program("mosquitto_sub"), program("mosquitto_pub")
    broker = Broker(tmp_path)
    with broker:
        assert run(pub, "-p", str(broker.port), "-q", "1", "-r", "-t", "felt/1/a", "-m", "here").returncode == 0
    with broker:
        assert run(sub, "-p", str(broker.port), "-t", "felt/1/#", "-C", "1", "-W", "10").stdout == "here\n"


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


# ---- the page


def test_the_page_names_every_file_and_no_other() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    there = {path.name for path in FOLDER.iterdir() if path.is_file()} - {"README.md"}
    assert there <= set(re.findall(r"`([\w.-]+\.(?:service|conf|rules|toml))`", page))
    assert set(re.findall(r"systemd/([\w.-]+\.(?:service|conf|rules|toml))", page)) <= there | {"feltd.toml"}


def test_every_block_of_the_page_is_a_shell_script() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 8
    for block in blocks:
        done = run(program("bash"), "-n", stdin=block)
        assert (done.returncode, done.stderr) == (0, ""), block


def test_the_program_stands_where_make_install_leaves_it() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert list(scripts) == [Path(PROGRAM).name]
    assert (ROOT / ".venv/bin/feltd").exists()
