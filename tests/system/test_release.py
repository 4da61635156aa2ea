"""The signed list of a release: what a receiver checks, with the tools of a bare Debian."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SIGN = Path(__file__).parents[2] / "debian/sign"
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
    (dist / "feltd_0.1.0_amd64.deb").write_bytes(b"package")
    (dist / "feltd-0.1.0.tar.gz").write_bytes(b"sources")
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
        "feltd-0.1.0.tar.gz",
        "feltd_0.1.0_amd64.deb",
    ]
    # The two commands of docs/how-to/install.md.
    verify = ("gpgv", "--keyring", "./feltd-release.gpg", "SHA256SUMS.gpg", "SHA256SUMS")
    check = ("sha256sum", "--check", "SHA256SUMS")
    assert run(*verify, cwd=dist, home=home).returncode == 0
    assert run(*check, cwd=dist, home=home).returncode == 0
    (dist / "feltd_0.1.0_amd64.deb").write_bytes(b"another")
    assert run(*check, cwd=dist, home=home).returncode != 0
    (dist / "SHA256SUMS").write_text("")
    assert run(*verify, cwd=dist, home=home).returncode != 0
