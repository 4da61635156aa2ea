"""The Ansible role of docs/examples/ansible updates computers in waves, and stops at the first one that is worse.

A computer is an overlay over this one's files: apt, dpkg, the role and the program of this checkout are real in it. The
package is made here, of the program's path alone, in versions of which one does not run.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simulators.lab.broker import find_mosquitto, free_port

ROOT = Path(__file__).parents[2]
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
TOOLS = ("unshare", "chroot", "dpkg-deb", "apt-get", "mosquitto_pub")
WORKS = f'#!/bin/sh\nexec {sys.executable} -m daemon.cli "$@"\n'
FAILS = "#!/bin/sh\necho Traceback >&2\nexit 70\n"
# Runs with mounts of its own: two computers with version 1, their broker, whose table plays or not, and the playbook.
SCRIPT = """
set -e
mount -t tmpfs none "$work/mounts"
for one in table-01 table-02; do
  here=$work/mounts/$one root=$work/mounts/$one/root
  mkdir -p "$here/upper" "$here/own" "$root"
  mount -t overlay none -o "lowerdir=/,upperdir=$here/upper,workdir=$here/own" "$root"
  for path in /proc /dev "$work" "$checkout" "$prefix"; do
    mkdir -p "$root$path"
    mount --rbind "$path" "$root$path"
  done
  rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d "$root"/etc/feltd
  mkdir -p "$root/etc/apt/sources.list.d" "$root/etc/feltd/mqtt" "$root/etc/mosquitto"
  echo "deb [trusted=yes] file:$work/packages ./" >"$root/etc/apt/sources.list.d/feltd.list"
  echo 'APT::Sandbox::User "root";' >"$root/etc/apt/apt.conf.d/99feltd" # the folder of a test is closed to others
  echo secret >"$root/etc/feltd/mqtt/reader"
  chroot "$root" dpkg -i "$work/packages/feltd_1_all.deb"
  chroot "$root" feltd init --site lisboa --edge $one --table rou-1=macau.roulette \\
    --option rou-1.betting=no_more_bets --device rou-1/wheel-1=cammegh_ss2@tcp://127.0.0.1:7001
  printf '#!/bin/sh\\nexec chroot %s /usr/bin/python3 "$@"\\n' "$root" >"$here/python"
  chmod +x "$here/python"
  echo "$one ansible_connection=local ansible_pipelining=true ansible_python_interpreter=$here/python"
done >"$work/computers"
grep ansible_connection "$work/computers" | sed '1i [tables]' >"$work/inventory.ini"
printf 'listener %s 127.0.0.1\\nallow_anonymous true\\n' "$port" >"$work/mosquitto.conf"
"$mosquitto" -c "$work/mosquitto.conf" & broker=$!
resolved=felt/1/lisboa/table/rou-1/round/event/resolved
play() { while sleep 0.2; do mosquitto_pub -p "$port" -t $resolved -m x || true; done; }
[ -z "$plays" ] || { play & player=$!; }
end() { kill $broker ${player:-}; }
trap end EXIT
"$ansible" -i "$work/inventory.ini" "$checkout/docs/examples/ansible/update.yml" -e ansible_become=false \\
  -e feltd_version="$version" -e feltd_broker_port="$port" -e feltd_rounds_within_s=$within_s \\
  -e '{"feltd_waves": [1, "100%"]}' && echo "GOOD" || echo "STOPPED"
for one in table-01 table-02; do
  echo "$one has $(chroot "$work/mounts/$one/root" dpkg-query -W -f '${Version}' feltd)"
done
"""


def can_overlay() -> bool:
    """Whether this user may lay files over this computer's."""
    if os.geteuid() != 0 or not all(map(shutil.which, TOOLS)):
        return False
    mounts = "mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w /mnt/m"
    overlay = "mount -t overlay none -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/m"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{mounts} && {overlay}"], check=False, capture_output=True
    )
    return done.returncode == 0


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not ANSIBLE.exists(), reason="ansible is not installed: make .venv/.ansible"),
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
]


def repository(folder: Path, versions: dict[str, str]) -> None:
    """A folder of packages for apt; `versions`: the program of each."""
    folder.mkdir()
    entries = []
    for version, program in versions.items():
        tree = folder / f"tree-{version}"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "usr/bin").mkdir(parents=True)
        control = f"Package: feltd\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@feltd.example>\n"
        control += "Description: test\n"
        (tree / "DEBIAN/control").write_text(control, encoding="utf-8")
        (tree / "usr/bin/feltd").write_text(program, encoding="utf-8")
        (tree / "usr/bin/feltd").chmod(0o755)
        package = folder / f"feltd_{version}_all.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, package], check=True, capture_output=True)
        data = package.read_bytes()
        sums = f"Filename: ./{package.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
        entries.append(control + sums)
    (folder / "Packages").write_text("\n".join(entries), encoding="utf-8")


def update(folder: Path, version: str, *, plays: bool = True) -> list[str]:
    """The last lines of an update of two computers from version 1: how it ended, and what each has."""
    if not can_overlay():
        pytest.skip("only root, where overlays are allowed, can make computers here")
    repository(folder / "packages", {"1": WORKS, "2": WORKS, "3": FAILS})
    (folder / "mounts").mkdir()
    given = {
        "work": str(folder),
        "checkout": str(ROOT),
        "prefix": sys.base_prefix,
        "ansible": str(ANSIBLE),
        "mosquitto": str(find_mosquitto()),
        "port": str(free_port()),
        "version": version,
        "plays": "yes" if plays else "",
        "within_s": "300" if plays else "1",
        "PYTHONPATH": str(ROOT),
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    command = ["unshare", "--mount", "--propagation", "private", "bash", "-c", SCRIPT]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | given)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (folder / "said").write_text(done.stdout, encoding="utf-8")
    return done.stdout.splitlines()[-3:]


def test_ansible_lint_finds_nothing_in_the_playbook_and_its_role(tmp_path: Path) -> None:
    words = [str(ANSIBLE.with_name("ansible-lint")), "--offline", "--profile", "production", "."]
    path = {"PATH": f"{ANSIBLE.parent}:{os.environ['PATH']}", "ANSIBLE_HOME": str(tmp_path)}
    folder = ROOT / "docs/examples/ansible"
    done = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True, env=os.environ | path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_computers_get_a_good_version(tmp_path: Path) -> None:
    assert update(tmp_path, "2") == ["GOOD", *(f"table-0{n} has 2" for n in (1, 2))]


@pytest.mark.parametrize(
    ("version", "plays", "failed"), [("3", True, "Check the configuration"), ("2", False, "Wait for")]
)
def test_a_bad_version_stops_at_its_first_computer(tmp_path: Path, version: str, plays: bool, failed: str) -> None:
    """It does not run, or no table plays with it."""
    assert update(tmp_path, version, plays=plays) == ["STOPPED", *(f"table-0{n} has 1" for n in (1, 2))]
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert f"table-01 is back at 1; it failed at: {failed}" in said.replace("feltd : ", "")
    assert "[table-02]" not in said, "the second wave did not begin"
