"""A kill at any moment leaves no file half written, and the same command completes the work."""

import errno
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from cryptography import x509

from daemon import whole_files
from daemon.broker.mac_keys import load_mac_key, make_mac_key
from daemon.cli.authority import Authority, BadAuthority
from daemon.cli.main import main
from daemon.journal.hash_chain import Statement, encode_statement
from daemon.journal.signing import BadKey, Key, PublicKey, make_key, public_path
from daemon.journal.witness import Witness, heads_in
from protocols.contract.documents import JournalHead

ROOT = str(Path(__file__).parents[2] / "daemon")
WRITERS = {pathlib.__file__, shutil.__file__}
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "edge-7"
journal = "{folder}/edge.db"
[rules]
journal = "{folder}/rules.db"
[console]
username = "console"
store = "{folder}/console.db"
journal = "{folder}/console-journal.db"
[[table]]
name = "rou-1"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:1"
"""


def at_each_line(folder: Path, work: Callable[[], object]) -> Iterator[None]:
    """Do `work`; then restore `folder` as it stood on the disk at each line of `work`, one after the other."""
    seen: list[dict[str, tuple[int, bytes | None]]] = []

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        source = frame.f_code.co_filename
        if not source.startswith(ROOT) and source not in WRITERS:
            return None
        if event in ("line", "return"):
            files = contents(folder)
            if not seen or seen[-1] != files:
                seen.append(files)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    assert len(seen) > 1
    for files in seen:
        shutil.rmtree(folder)
        folder.mkdir()
        for name, (mode, raw) in files.items():
            if raw is None:
                (folder / name).mkdir()
            else:
                (folder / name).write_bytes(raw)
            (folder / name).chmod(mode)
        yield


def contents(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Mode and bytes of each file, by its path in `folder`, a folder before its files; folders have no bytes."""
    found = {}
    for one in sorted(folder.rglob("*")):
        raw = None if one.is_dir() else one.read_bytes()
        found[str(one.relative_to(folder))] = (one.stat().st_mode & 0o777, raw)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made


def feltd(*words: str) -> str:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_key_of_journals_is_whole_and_has_its_public_half(folder: Path) -> None:
    path = folder / "key"
    for _ in at_each_line(folder, lambda: make_key(path)):
        if public_path(path).exists():
            PublicKey.load(public_path(path))
        if path.exists():
            assert Key.load(path).id == PublicKey.load(public_path(path)).id
        elif not public_path(path).exists():
            make_key(path)
        else:
            with pytest.raises(BadKey, match=r"key.pub: exists already"):
                make_key(path)


def test_a_mac_key_is_whole_or_is_made_by_the_next_command(folder: Path) -> None:
    path = folder / "edge-7.key"
    for _ in at_each_line(folder, lambda: make_mac_key(path)):
        if not path.exists():
            make_mac_key(path)
        assert len(load_mac_key(path)) == 32


@pytest.mark.parametrize("sync", ["fsync", "link"])
def test_file_that_another_process_makes_meanwhile_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sync: str
) -> None:
    path, called = folder / "key", getattr(os, sync)

    def late(*words: Any) -> None:
        path.write_bytes(b"other")
        called(*words)

    monkeypatch.setattr(os, sync, late)
    with pytest.raises(FileExistsError) as caught:
        whole_files.create(path, b"mine", 0o600)
    assert caught.value.filename == str(path)
    assert [(one.name, one.read_bytes()) for one in folder.iterdir()] == [("key", b"other")]


def test_new_file_is_made_where_there_are_no_hard_links(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the file system of a USB stick. An existing file is kept there, too."""

    def refused(*_: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    path = folder / "key"
    whole_files.create(path, b"mine", 0o600)
    with pytest.raises(FileExistsError):
        whole_files.create(path, b"second", 0o600)
    assert [(one.name, one.read_bytes()) for one in folder.iterdir()] == [("key", b"mine")]


def test_file_that_cannot_be_written_is_named_as_the_user_named_it(folder: Path) -> None:
    for work in (whole_files.create, whole_files.write):
        with pytest.raises(OSError, match="No such file") as caught:
            work(folder / "missing" / "key", b"", 0o600)
        assert caught.value.filename == str(folder / "missing" / "key")


def test_a_first_configuration_is_whole_or_is_written_by_the_next_init(folder: Path) -> None:
    path = folder / "feltd.toml"
    words = ["init", "-c", str(path), "--site", "lisboa", "--edge", "edge-7", "--table", "rou-1=macau.roulette"]
    feltd(*words)
    whole = contents(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    for _ in at_each_line(folder, lambda: feltd(*words)):
        if not path.exists():
            feltd(*words)
        assert path.read_bytes() == whole["feltd.toml"][1]
        made = contents(folder)
        assert {name: mode for name, (mode, _) in made.items() if ".new" not in name} == {
            name: mode for name, (mode, _) in whole.items()
        }
        assert made["edge-mac.key"] == made["mac/edge-7.key"] == made["jackpots-mac/edge-7.key"]
        assert made["rules-mac.key"] == made["jackpots-verdict-mac/lisboa.key"]


def test_an_authority_is_whole_or_is_made_by_the_next_init(folder: Path) -> None:
    for _ in at_each_line(folder, lambda: Authority.create(folder, "lisboa", NOW)):
        try:
            authority = Authority(folder, NOW)
        except BadAuthority:
            authority = Authority.create(folder, "lisboa", NOW)
        authority.issue("edge-7")
        x509.load_pem_x509_crl((folder / "ca.crl").read_bytes())


def test_an_authority_without_its_key_is_not_replaced_where_it_made_certificates(folder: Path) -> None:
    """Its key may be kept elsewhere."""
    Authority.create(folder, "lisboa", NOW).issue("edge-7")
    (folder / "ca.key").unlink()
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    with pytest.raises(BadAuthority, match="an authority is there already"):
        Authority.create(folder, "lisboa", NOW)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before


def test_a_revocation_is_completed_by_the_next_one(folder: Path) -> None:
    """A certificate that is listed as revoked and is not in the list of the brokers would stay valid for them."""
    serial = int(Authority.create(folder, "lisboa", NOW).issue("edge-7").serial, 16)
    for _ in at_each_line(folder, lambda: Authority(folder, NOW).revoke("edge-7")):
        authority = Authority(folder, NOW)
        if authority.issued()[0].revoked is None:
            authority.revoke("edge-7")
        revoked = x509.load_pem_x509_crl((folder / "ca.crl").read_bytes())
        assert revoked.get_revoked_certificate_by_serial_number(serial) is not None


def test_the_configuration_in_a_backup_is_the_old_or_the_new_one(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "feltd.toml"
    config.write_text(old := CONFIG.format(folder=tmp_path))
    feltd("backup", "-c", str(config), str(folder))
    config.write_text(new := old + "# changed\n")
    for _ in at_each_line(folder, lambda: feltd("backup", "-c", str(config), str(folder))):
        assert (folder / "feltd.toml").read_text() in (old, new)


@pytest.mark.parametrize("linked", [False, True])
def test_a_backup_into_the_folder_of_the_configuration_is_refused(folder: Path, tmp_path: Path, linked: bool) -> None:
    """It would take the rights of the configuration away, or the link to it."""
    config = folder / "feltd.toml"
    if linked:
        config.symlink_to(tmp_path / "feltd.toml")
    config.write_text(CONFIG.format(folder=folder))
    config.chmod(0o640)
    done = CliRunner().invoke(main, ["backup", "-c", str(config), str(folder)])
    assert done.exit_code == 2
    assert "name another one for the copies" in done.output
    assert config.is_symlink() == linked
    assert config.stat().st_mode & 0o777 == 0o640


def test_a_witness_writes_on_after_a_line_that_a_kill_cut(folder: Path) -> None:
    said = [Statement("1", 2, "j-1", number, number, NOW, {}, "", "k") for number in range(1, 6)]
    heads = [JournalHead("j-1", one.number, one.n, encode_statement(one).decode(), "") for one in said]

    def take(number: int) -> None:
        Witness(folder).take("edge-7", msgspec.json.encode(heads[number]), NOW)

    take(0)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    after = msgspec.json.encode(heads[1])
    for cut in range(1, len(after) + 1):
        file.write_bytes(whole + after[:cut])
        inode = file.stat().st_ino
        Witness(folder)
        assert file.stat().st_ino == inode, "another file may have another owner"
        for number in range(1, 4):
            take(number)
        assert list(heads_in([folder])) == heads[:4]
