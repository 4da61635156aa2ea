"""A later build is an upgrade. It stops the services before it replaces their files, and starts them after."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
UNITS = {"feltd-change.socket", *(f"feltd-{part}.service" for part in ("edge", "rules", "console", "jackpots"))}


def run(*words: str | Path, cwd: Path, **env: str) -> str:
    """What the command prints."""
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=os.environ | env, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Clone:
    """A clone of a project with what the version is made from, and its commits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "debian").mkdir(parents=True)
        for name in ("debian/version", "debian/time-of-sources", "pyproject.toml", ".gitattributes"):
            shutil.copy(ROOT / name, folder / name)
        self.git("init", "-q")

    def git(self, *words: str, time: str = "") -> str:
        who = {f"GIT_{one}_{key}": f"t@{key}" for one in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        return run("git", *words, cwd=self.folder, **who, GIT_COMMITTER_DATE=time)

    def commit(self, time: str) -> str:
        """The version after a commit of everything."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x", time=time)
        return self.version()

    def version(self) -> str:
        return run(self.folder / "debian/version", cwd=Path("/"))


def test_a_later_build_is_an_upgrade_and_the_same_sources_are_the_same_version(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    first, second = clone.commit("2026-11-20T09:00:00+0800"), clone.commit("2026-11-21T08:59:59+0000")
    assert (first, second) == (f"{written}+20261120t010000", f"{written}+20261121t085959")
    assert clone.version() == second
    changed = clone.folder / "new.py"
    changed.write_text("")
    os.utime(changed, (2_000_000_000, 2_000_000_000))  # after the commit
    assert clone.version() == f"{written}+20330518t033320"
    if shutil.which("dpkg"):
        for before, after in [(written, first), (first, second), (second, clone.version())]:
            run("dpkg", "--compare-versions", before, "lt", after, cwd=tmp_path)


def test_an_unpacked_release_has_the_version_of_its_commit_without_git(tmp_path: Path) -> None:
    clone = Clone(tmp_path / "clone")
    version = clone.commit("2026-11-21T08:59:59+0000")
    unpacked = tmp_path / "unpacked"
    clone.git("archive", "--format=tar", f"--output={tmp_path}/release.tar", "HEAD")
    unpacked.mkdir()
    run("tar", "-xf", "release.tar", "-C", unpacked, cwd=tmp_path)
    (tmp_path / "empty").mkdir()
    assert run(sys.executable, unpacked / "debian/version", cwd=unpacked, PATH=str(tmp_path / "empty")) == version
    run(unpacked / "debian/version", unpacked, cwd=unpacked)
    package = version.replace("rc", "~rc")
    changelog = unpacked / "debian/changelog"
    assert changelog.read_text(encoding="utf-8").startswith(f"feltd ({package}+deb12) bookworm;")
    assert tomllib.loads((unpacked / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"] == version


def test_a_package_for_the_next_debian_says_so(tmp_path: Path) -> None:
    package = Clone(tmp_path / "clone").commit("2026-11-21T08:59:59+0000").replace("rc", "~rc")
    (tmp_path / "copy/debian").mkdir(parents=True)
    run(tmp_path / "clone/debian/version", tmp_path / "copy", "13", cwd=tmp_path)
    changelog = (tmp_path / "copy/debian/changelog").read_text(encoding="utf-8")
    assert changelog.startswith(f"feltd ({package}+deb13) trixie;")


def test_the_page_names_a_package_as_a_build_does() -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    names = re.findall(r"feltd_(\S+?)_amd64\.deb", INSTALL)
    assert names
    package = re.escape(written.replace("rc", "~rc"))
    assert all(re.fullmatch(rf"{package}\+\d{{8}}t\d{{6}}\+deb1[23]", name) for name in names)


@pytest.mark.skipif(not shutil.which("dpkg"), reason="needs dpkg")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("0.1.0+20261124t170406", "1.0.0~rc1+20261128t060000+deb12"),
        ("1.0.0~rc1+20261128t060000+deb12", "1.0.0~rc1+20261128t060000+deb13"),
        ("1.0.0~rc1+20261128t060000+deb13", "1.0.0~rc2+20261127t060000+deb12"),
        ("1.0.0~rc9+20261128t060000+deb13", "1.0.0+20261128t060000+deb12"),
    ],
)
def test_apt_takes_a_candidate_for_older_than_its_release(before: str, after: str, tmp_path: Path) -> None:
    """And the package for the next Debian for newer."""
    run("dpkg", "--compare-versions", before, "lt", after, cwd=tmp_path)


def test_the_changelog_begins_with_the_version_of_these_sources() -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    versions = re.findall(r"(?m)^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert versions[0] == written.replace("rc", "~rc")


@pytest.mark.skipif(not shutil.which("dh_installsystemd"), reason="needs debhelper")
def test_every_service_is_stopped_before_an_upgrade_and_started_after(tmp_path: Path) -> None:
    """A process loads a driver or a game when it needs it: of another version it must not find one."""
    units = tmp_path / "debian/feltd/lib/systemd/system"
    units.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(ROOT / "systemd" / unit, units)
    shutil.copy(ROOT / "debian/control", tmp_path / "debian")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    run(ROOT / "debian/version", tmp_path, cwd=ROOT)
    calls = re.findall(r"^\t(dh_installsystemd .*)$", (ROOT / "debian/rules").read_text(encoding="utf-8"), re.MULTILINE)
    for call in calls:
        subprocess.run(call.split(), cwd=tmp_path, check=True, timeout=100)

    def services(script: str, action: str) -> set[str]:
        made = tmp_path / "debian/.debhelper/generated/feltd" / f"{script}.service"
        lines = re.findall(rf"deb-systemd-invoke {action} (.*?) >", made.read_text(encoding="utf-8"))
        return {unit.strip("'") for line in lines for unit in line.split()}

    assert services("preinst", "stop") == UNITS
    assert services("postinst", "start") == UNITS
    assert services("prerm", "stop") == UNITS
