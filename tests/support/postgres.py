"""A private PostgreSQL for tests: Debian's programs, a cluster in a folder of its own, a socket there and no port."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SETTINGS = [f"--{one}" for one in ("listen_addresses=", "shared_buffers=32MB", "max_wal_size=128MB")]
WAIT_S = 60.0


def programs() -> Path:
    """The folder of initdb and pg_ctl. Skips the test where they are not installed, or root has no other user."""
    pytest.importorskip("psycopg", reason="no psycopg: make .venv/.ledger")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parts[-3]))
    if not found or int(found[-1].parts[-3]) < 15:
        pytest.skip("no PostgreSQL 15 or newer: apt-get install postgresql")
    return found[-1].parent


class Postgres:
    """A cluster that can be killed and started again. As root it runs as the user postgres of Debian's package."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder, self._binaries = folder, binaries
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(folder, self._user)
        self._run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "owner", "--no-sync")
        self.start()
        self._run("createdb", "-h", str(folder), "-U", "owner", "feltd")

    def url(self, user: str = "owner") -> str:
        return f"host={self.folder} dbname=feltd user={user} connect_timeout=5"

    def start(self) -> None:
        """Until it answers. After a kill it may not start while a child of the one before still ends."""
        until = time.monotonic() + WAIT_S
        while not self._answers():
            assert time.monotonic() < until, f"see {self.folder.parent}"
            if self._postmaster is None or self._postmaster.poll() is not None:
                command = [str(self._binaries / "postgres"), "-D", f"{self.folder}/data", *SETTINGS]
                command += ["-c", f"unix_socket_directories={self.folder}"]
                with self._out().open("ab") as out:
                    self._postmaster = subprocess.Popen(command, user=self._user, stdout=out, stderr=out, cwd="/")
            time.sleep(0.1)

    def kill(self) -> None:
        assert self._postmaster is not None
        self._postmaster.kill()
        self._postmaster.wait()

    def _answers(self) -> bool:
        asked = [str(self._binaries / "pg_isready"), "-q", "-h", str(self.folder)]
        return subprocess.run(asked, check=False).returncode == 0

    def _out(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.out"

    def _run(self, program: str, *words: str) -> None:
        with self._out().open("ab") as out:
            command = [str(self._binaries / program), *words]
            subprocess.run(command, check=True, user=self._user, stdout=out, stderr=out, cwd="/")


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """The path of a socket is short: a folder below /tmp."""
    binaries = programs()
    with tempfile.TemporaryDirectory(prefix="feltd-pg-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "pg"
        folder.mkdir()
        one = Postgres(folder, binaries)
        try:
            yield one
        finally:
            one.kill()
