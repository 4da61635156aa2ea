"""Checkpoints kept on another computer show that the end of a journal was cut off, whatever was done beside it."""

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from helpers import IDLE_S, broker_may_be_late

from daemon.broker.connection import connect
from daemon.broker.retained import Retained
from daemon.cli.main import main
from daemon.config.model import parse
from daemon.journal import retention
from daemon.journal.retention import accept
from daemon.journal.rows import Entry
from daemon.journal.signing import Key, make_key, public_path
from daemon.journal.store import Journal
from daemon.journal.verify import verify
from daemon.journal.witness import BadWitness, HeadRefused, Witness, compare, heads_in
from daemon.logs import get
from protocols.contract.documents import JournalHead
from protocols.contract.topics import edge_topic
from simulators.lab.broker import Broker, find_mosquitto

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CONFIG = '[site]\nname = "s"\n[edge]\nname = "e"\n[journal]\nkey = "{key}"\nsign_rows = 10\n[mqtt]\nport = {port}\n'


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path / "key.pem")


def write(folder: Path, key: Key, rows: int) -> list[JournalHead]:
    """Rows in the journal of this folder; its checkpoints, one for ten rows."""
    heads = []
    journal = Journal(folder / "journal.db")
    journal.signed_by(key, 10)
    for _ in range(rows):
        journal.append([Entry("t-1", "d-1", "ball.landed", NOW, b"{}")])
        head = journal.signed_checkpoint()
        if head is not None and head not in heads:
            heads.append(head)
    journal.close()
    return heads


def seen(folder: Path, heads: list[JournalHead]) -> list[str]:
    """What a witness says of heads that arrive one after the other."""
    witness = Witness(folder)
    return [witness.take("e", msgspec.json.encode(head), NOW) for head in heads]


def findings(path: Path, witness: Path, key: Key) -> list[str]:
    report = verify(path, [key.public])
    compare(path, heads_in([witness]), [key.public], report)
    return [finding.text for finding in report.findings]


def test_a_whole_journal_agrees_with_its_witness(tmp_path: Path, key: Key) -> None:
    heads = write(tmp_path, key, 35)
    assert [head.row for head in heads] == [10, 20, 30]
    assert seen(tmp_path / "witness", heads) == ["", "", ""]
    assert findings(tmp_path / "journal.db", tmp_path / "witness", key) == []


def test_an_older_copy_with_its_note_is_found_by_the_witness_alone(tmp_path: Path, key: Key) -> None:
    heads = write(tmp_path, key, 10)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("journal.db*"):
        shutil.copy(file, copy)
    heads += write(tmp_path, key, 20)
    seen(tmp_path / "witness", heads)
    assert verify(copy / "journal.db", [key.public]).good
    (text,) = findings(copy / "journal.db", tmp_path / "witness", key)
    assert text == "checkpoint 3 after row 30, which the witness received, is missing: the last one here is 1"


def test_rows_signed_on_top_of_an_older_copy_are_found(tmp_path: Path, key: Key) -> None:
    heads = write(tmp_path, key, 10)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("journal.db*"):
        shutil.copy(file, copy)
    heads += write(tmp_path, key, 20)
    accept(copy / "journal.db")
    other = write(copy, key, 25)
    said = seen(tmp_path / "witness", heads + other[1:])
    assert "checkpoint 2 (row 20) after checkpoint 3 (row 30): an end was cut off" in said[-2]
    assert "checkpoint 3 (row 30) after checkpoint 3" in said[-1] or said[-1] == ""
    only = tmp_path / "only"
    seen(only, heads)
    assert "checkpoint 2 is not the one that the witness received" in findings(copy / "journal.db", only, key)


def test_a_head_that_is_delivered_twice_is_kept_once(tmp_path: Path, key: Key) -> None:
    heads = write(tmp_path, key, 20)
    assert seen(tmp_path / "witness", [*heads, *heads]) == ["", "", "", ""]
    assert seen(tmp_path / "witness", heads) == ["", ""]
    assert len(list(heads_in([tmp_path / "witness"]))) == 2


def test_a_forged_head_does_not_pass_for_one_of_the_journal(tmp_path: Path, key: Key) -> None:
    heads = write(tmp_path, key, 10)
    journal = heads[0].journal
    folder = tmp_path / "witness"
    seen(folder, heads)
    forged = [
        msgspec.structs.replace(heads[0], signature="AAAA"),
        msgspec.structs.replace(heads[0], checkpoint=9),
        JournalHead(journal, 8, 1, "{", "AAAA"),
    ]
    file = next(folder.iterdir())  # kept by a witness that had no keys
    file.write_bytes(file.read_bytes() + b"".join(msgspec.json.encode(head) + b"\n" for head in forged))
    texts = findings(tmp_path / "journal.db", folder, key)
    assert "the witness's checkpoint 1 has a wrong signature" in texts
    assert "the witness's checkpoint 9 differs from its statement" in texts
    assert "the witness's checkpoint 8 cannot be read" in texts
    assert len(texts) == 3  # nothing is concluded from them: no end is missing


def test_a_witness_that_was_killed_while_it_wrote_goes_on(tmp_path: Path, key: Key) -> None:
    heads = write(tmp_path, key, 20)
    folder = tmp_path / "witness"
    seen(folder, heads[:1])
    (file,) = folder.glob("*.ndjson")
    file.write_bytes(file.read_bytes() + b'{"journal":')
    assert list(heads_in([folder])) == heads[:1]
    file.write_bytes(b"x\n" + file.read_bytes())
    with pytest.raises(BadWitness, match=r"ndjson:1: no head of a journal"):
        Witness(folder)


@pytest.mark.parametrize("raw", [b"x", b"{}", b"\xff", b"[" * 10_000, b'"' + b"x" * 300_000 + b'"'])
def test_what_is_no_head_is_said_and_not_kept(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(HeadRefused, match="a head "):
        Witness(tmp_path).take("e", raw, NOW)
    assert list(tmp_path.iterdir()) == []


class Heads(Retained):
    """Retained topics that keep what was put under `head`."""

    def __init__(self) -> None:
        super().__init__()
        self.head = asyncio.get_running_loop().create_future()

    def put(self, topic: str, value: bytes | Callable[[], Any]) -> None:
        if topic == edge_topic("s", "e", "head"):
            self.head.set_result(value)


async def test_each_new_checkpoint_is_retained_on_its_topic(tmp_path: Path, key: Key) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.signed_by(key, 10)
    retained = Heads()
    config = parse(CONFIG.format(key=tmp_path / "key.pem", port=1883))

    async def process() -> None:
        journal.append([Entry("t-1", "d-1", "ball.landed", NOW, b"{}")] * 10)
        await retained.head

    await retention.kept(process(), journal, config, "e", retained.put, get())
    head = msgspec.json.decode(await retained.head, type=JournalHead)
    assert (head.checkpoint, head.row) == (1, 10)
    journal.close()


@pytest.mark.system
async def test_the_command_keeps_heads_and_verify_compares_them(
    tmp_path: Path, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker_may_be_late(monkeypatch)
    if find_mosquitto() is None:
        pytest.skip("no mosquitto on this computer")
    heads = write(tmp_path, key, 20)
    broker = Broker(tmp_path)
    await broker.start()
    file = tmp_path / "feltd.toml"
    text = CONFIG.format(key=tmp_path / "key.pem", port=broker.port)
    await asyncio.to_thread(file.write_text, text)
    command = [sys.executable, "-m", "daemon.cli", "journal", "witness", "-c", str(file), "--folder", "kept"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        async with connect(parse(text).mqtt, "e") as session, asyncio.timeout(IDLE_S):
            await session.publish(edge_topic("s", "e", "head"), msgspec.json.encode(heads[-1]), retain=True)
            while not list(  # noqa: ASYNC110 - another process writes it
                await asyncio.to_thread(lambda: list((tmp_path / "kept").glob("e-*.ndjson")))
            ):
                await asyncio.sleep(0.05)
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
        await broker.stop()
    public = ["--public", str(public_path(tmp_path / "key.pem"))]
    args = ["journal", "verify", *public, "--witness", str(tmp_path / "kept"), str(tmp_path / "journal.db")]
    done = await asyncio.to_thread(CliRunner().invoke, main, args)
    assert done.exit_code == 0
    assert "compared with 1 checkpoints of a witness, the last one 2" in done.output
