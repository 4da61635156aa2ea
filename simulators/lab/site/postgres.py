"""A private PostgreSQL for the demo and the tests: Debian's programs, a cluster in a folder, a socket and no port."""

import asyncio
import contextlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["Postgres", "no_postgres", "postgres"]

SETTINGS = ("--listen_addresses=", "--shared_buffers=32MB", "--max_wal_size=128MB")
WAIT_S = 60.0
AGAIN_S = 0.5
LEAST_VERSION = 15


def _programs() -> Path | None:
    """The folder of initdb and its like; None where there is no PostgreSQL that is new enough."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parts[-3]))
    return found[-1].parent if found and int(found[-1].parts[-3]) >= LEAST_VERSION else None


def no_postgres() -> str:
    """What is missing and its remedy; empty if a `Postgres` can start."""
    if _programs() is None:
        return f"no PostgreSQL {LEAST_VERSION} or newer: apt-get install postgresql"
    return "" if importlib.util.find_spec("psycopg") else "no psycopg: make .venv/.ledger"


class Postgres:
    """A cluster that can be killed and started again. As root it runs as the user postgres of Debian's package."""

    def __init__(self, folder: Path, settings: Sequence[str] = (), before: Sequence[str] = ()) -> None:
        """Make the cluster in an empty folder and start it. `before`: a prefix of the server's command."""
        binaries = _programs()
        assert binaries is not None, no_postgres()
        self.folder, self._binaries, self._settings, self._before = folder, binaries, settings, before
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(folder, self._user)
        self._run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "owner", "--no-sync")
        self.start()
        self._run("createdb", "-h", str(folder), "-U", "owner", "feltd")

    def url(self, user: str = "owner") -> str:
        """The connection string of a user."""
        return f"host={self.folder} dbname=feltd user={user} connect_timeout=60"

    def start(self) -> None:
        """Return when it answers. After a kill it fails to start until all children of the killed one ended."""
        until = time.monotonic() + WAIT_S
        while not self._answers():
            assert time.monotonic() < until, f"see {self.folder.parent}"
            if self._postmaster is None or self._postmaster.poll() is not None:
                command = [*self._before, str(self._binaries / "postgres"), "-D", f"{self.folder}/data"]
                command += [*SETTINGS, *self._settings, "-c", f"unix_socket_directories={self.folder}"]
                with self._out().open("ab") as out:
                    self._postmaster = subprocess.Popen(  # noqa: S603 - ours
                        command, user=self._user, stdout=out, stderr=out, cwd="/", start_new_session=True
                    )
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server, as a crash does."""
        assert self._postmaster is not None
        self._postmaster.kill()
        self._postmaster.wait()

    async def keep(self) -> None:
        """Start it again when it ends, as systemd does."""
        while True:
            if self._postmaster is None or self._postmaster.poll() is not None:
                await asyncio.to_thread(self.start)
            await asyncio.sleep(AGAIN_S)

    def _answers(self) -> bool:
        asked = [str(self._binaries / "pg_isready"), "-q", "-h", str(self.folder)]
        return subprocess.run(asked, check=False).returncode == 0  # noqa: S603 - ours

    def _out(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.out"

    def _run(self, program: str, *words: str) -> None:
        with self._out().open("ab") as out:
            command = [str(self._binaries / program), *words]
            subprocess.run(command, check=True, user=self._user, stdout=out, stderr=out, cwd="/")  # noqa: S603 - ours


@contextlib.contextmanager
def postgres(settings: Sequence[str] = (), before: Sequence[str] = ()) -> Iterator[Postgres]:
    """A cluster for a while. The path of a socket is short: its folder is below /tmp."""
    with tempfile.TemporaryDirectory(prefix="feltd-pg-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "pg"
        folder.mkdir()
        one = Postgres(folder, settings, before)
        try:
            yield one
        finally:
            one.kill()
