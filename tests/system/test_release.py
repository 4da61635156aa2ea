"""The signed list of a release: what a receiver checks, with the tools of a bare Debian."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SIGN, REPOSITORY = (Path(__file__).parents[2] / "debian" / name for name in ("sign", "repository"))
TOOLS = ("gpg", "gpgv", "sha256sum")

pytestmark = pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason="GnuPG is not installed")


def run(*words: str | Path, cwd: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**os.environ, "GNUPGHOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_changed_file_or_list_of_a_release_is_refused(tmp_path: Path) -> None:
    home, dist = tmp_path / "keys", tmp_path / "dist"
    home.mkdir(mode=0o700)
    dist.mkdir()
    (dist / "feltd_1.0.0_amd64.deb").write_bytes(b"package")
    (dist / "feltd-1.0.0.tar.gz").write_bytes(b"sources")
    refused = run(SIGN, dist, "release@feltd.example", cwd=tmp_path, home=home)
    assert refused.returncode == 2
    assert "no secret key release@feltd.example" in refused.stdout

    made = ("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "release@feltd.example", "ed25519", "sign")
    assert run(*made, cwd=tmp_path, home=home).returncode == 0
    try:
        signed = run(SIGN, dist, "release@feltd.example", cwd=tmp_path, home=home)
    finally:
        run("gpgconf", "--kill", "gpg-agent", cwd=tmp_path, home=home)
    assert signed.returncode == 0, signed.stderr
    assert [line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()] == [
        "feltd-1.0.0.tar.gz",
        "feltd_1.0.0_amd64.deb",
    ]
    # The two commands of docs/how-to/install.md.
    verify = ("gpgv", "--keyring", "./feltd-release.gpg", "SHA256SUMS.gpg", "SHA256SUMS")
    check = ("sha256sum", "--check", "SHA256SUMS")
    assert run(*verify, cwd=dist, home=home).returncode == 0
    assert run(*check, cwd=dist, home=home).returncode == 0
    (dist / "feltd_1.0.0_amd64.deb").write_bytes(b"another")
    assert run(*check, cwd=dist, home=home).returncode != 0
    (dist / "SHA256SUMS").write_text("")
    assert run(*verify, cwd=dist, home=home).returncode != 0


@pytest.mark.skipif(not shutil.which("aptly"), reason="needs aptly, which debian/need-tools installs")
def test_a_repository_has_every_version_for_its_debian_and_is_signed(tmp_path: Path) -> None:
    home, key = tmp_path / "keys", "release@feltd.example"
    home.mkdir(mode=0o700)
    packages = []
    for version in ("1.0.0~rc1+deb12", "1.0.0~rc2+deb12", "1.0.0~rc2+deb13"):
        control = tmp_path / version / "DEBIAN/control"
        control.parent.mkdir(parents=True)
        fields = ("Package: feltd", f"Version: {version}", "Architecture: arm64", "Maintainer: t <t@t>")
        control.write_text("\n".join((*fields, "Description: t\n")))
        package = tmp_path / f"feltd_{version}_arm64.deb"
        assert run("dpkg-deb", "--build", tmp_path / version, package, cwd=tmp_path, home=home).returncode == 0
        packages.append(package)
    made = ("gpg", "--batch", "--passphrase", "", "--quick-generate-key", key, "ed25519", "sign")
    assert run(*made, cwd=tmp_path, home=home).returncode == 0
    apt = tmp_path / "dist/apt"
    try:
        for given in (packages[:1], packages):  # the second takes the place of the first
            done = run(REPOSITORY, apt, key, *given, cwd=tmp_path, home=home)
            assert done.returncode == 0, done.stdout + done.stderr
    finally:
        run("gpgconf", "--kill", "gpg-agent", cwd=tmp_path, home=home)
    index = "main/binary-arm64/Packages"
    for codename, versions in (("bookworm", ["1.0.0~rc1+deb12", "1.0.0~rc2+deb12"]), ("trixie", ["1.0.0~rc2+deb13"])):
        release = apt / "dists" / codename
        verify = ("gpgv", "--keyring", apt / "feltd-release.gpg", release / "InRelease")
        assert run(*verify, cwd=apt, home=home).returncode == 0
        lines = (release / index).read_text(encoding="utf-8").splitlines()
        assert sorted(line.partition(": ")[2] for line in lines if line.startswith("Version")) == versions
    assert [one.name for one in apt.parent.iterdir()] == ["apt"]
