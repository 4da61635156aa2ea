"""A peer of the broker who may publish a head fills neither disk nor memory of the witness, and hides nothing."""

import base64
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from helpers import at_length

from daemon.journal import witness
from daemon.journal.hash_chain import decode_statement, encode_statement
from daemon.journal.signing import Key, make_key
from daemon.journal.verify import verify
from daemon.journal.witness import HeadRefused, Witness, compare, heads_in
from protocols.contract.documents import JournalHead
from tests.journal.test_witness import findings, write

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LENGTH = 180 * 1024


def invented(like: JournalHead, number: int, key: Key | None = None, *, journal: str = "", long: bool = False) -> bytes:
    """A head that can be read, and that nobody signed, or somebody else."""
    said = msgspec.structs.replace(decode_statement(like.statement.encode()), number=number)
    if journal:
        said = msgspec.structs.replace(said, journal=journal)
    if long:
        said = msgspec.structs.replace(said, key="x" * LENGTH)
    if key is not None:
        said = msgspec.structs.replace(said, key=key.id)
    raw = encode_statement(said)
    signature = base64.b64encode(key.sign(raw) if key else os.urandom(64)).decode()
    return msgspec.json.encode(JournalHead(said.journal, number, said.n, raw.decode(), signature))


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*"))


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path / "key.pem")


@pytest.fixture
def heads(tmp_path: Path, key: Key) -> list[JournalHead]:
    return write(tmp_path, key, 30)


def refusals(keeper: Witness, raws: list[bytes], process: str = "e") -> int:
    refused = 0
    for raw in raws:
        try:
            keeper.take(process, raw, NOW)
        except HeadRefused:
            refused += 1
    return refused


def test_a_witness_with_keys_stores_no_head_that_they_did_not_sign(
    tmp_path: Path, key: Key, heads: list[JournalHead]
) -> None:
    other = make_key(tmp_path / "other.pem")
    keeper = Witness(tmp_path / "witness", [key.public])
    count = at_length(50, 800)
    forged = [invented(heads[0], 1000 + n, long=True) for n in range(count)]
    forged += [invented(heads[0], 5000 + n, other) for n in range(10)]
    assert refusals(keeper, forged) == count + 10
    assert not (tmp_path / "witness").exists()
    assert [keeper.take("e", msgspec.json.encode(head), NOW) for head in heads] == ["", "", ""]
    assert findings(tmp_path / "journal.db", tmp_path / "witness", key) == []


def test_without_keys_disk_and_memory_are_bounded(
    tmp_path: Path, heads: list[JournalHead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "MOST_DAY_BYTES", 1_000_000)
    monkeypatch.setattr(witness, "MOST_JOURNALS", 20)
    monkeypatch.setattr(witness, "MOST_PROCESSES", 5)
    folder = tmp_path / "witness"
    keeper = Witness(folder, most_bytes=3_000_000)
    for n in range(at_length(60, 800)):
        refusals(keeper, [invented(heads[0], 1000 + n, long=True)], f"e-{n % 10}")
        refusals(keeper, [invented(heads[0], 1, journal=f"{n:032x}")], "e-1")
    assert size(folder) <= 3_000_000
    assert len(list(folder.iterdir())) <= 5
    assert len(keeper._journals) <= 20
    remembered = sum(len(digest) for seen in keeper._journals.values() for digest in seen.digests)
    assert remembered < 1_000_000


def test_one_process_that_floods_takes_no_room_of_another(
    tmp_path: Path, heads: list[JournalHead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "MOST_DAY_BYTES", 1_000_000)
    keeper = Witness(tmp_path / "witness")
    flood = [invented(heads[0], 1000 + n, journal="f" * 32, long=True) for n in range(20)]
    assert refusals(keeper, flood, "e-2") > 10
    assert [keeper.take("e", msgspec.json.encode(head), NOW) for head in heads] == ["", "", ""]


def test_processes_are_counted_over_restarts_and_only_with_a_stored_head(
    tmp_path: Path, heads: list[JournalHead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness, "MOST_PROCESSES", 2)
    folder, raws = tmp_path / "witness", [msgspec.json.encode(head) for head in heads]
    Witness(folder).take("e-1", raws[0], NOW)
    full = Witness(folder, most_bytes=1)
    for process in ("e-2", "e-3"):
        with pytest.raises(HeadRefused, match="is full"):
            full.take(process, raws[1], NOW)
    Witness(folder).take("e-2", raws[1], NOW)
    with pytest.raises(HeadRefused, match="at most 2 processes"):
        Witness(folder).take("e-3", raws[2], NOW)


def test_a_full_folder_is_used_again_when_files_are_moved_away(tmp_path: Path, heads: list[JournalHead]) -> None:
    folder = tmp_path / "witness"
    keeper = Witness(folder, most_bytes=300_000)
    flood = [invented(heads[0], 1000 + n, journal="f" * 32, long=True) for n in range(3)]
    assert refusals(keeper, flood) == 2
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(HeadRefused, match="is full: 300000 bytes"):
        keeper.take("e", flood[1], NOW)
    assert keeper.take("e", flood[1], datetime(2026, 11, 20, 12, 2, tzinfo=UTC)) == ""


def test_an_invented_head_that_was_kept_hides_no_true_one(tmp_path: Path, key: Key, heads: list[JournalHead]) -> None:
    """Of a witness that had no keys: with a number that is taken, and with one far ahead."""
    folder = tmp_path / "witness"
    keeper = Witness(folder)
    for raw in [*map(msgspec.json.encode, heads), invented(heads[0], 3), invented(heads[0], 999)]:
        keeper.take("e", raw, NOW)
    report = verify(tmp_path / "journal.db", [key.public])
    compare(tmp_path / "journal.db", heads_in([folder]), [key.public], report)
    assert [finding.text for finding in report.findings] == [
        "the witness's checkpoint 3 has a wrong signature",
        "the witness's checkpoint 999 has a wrong signature",
    ]
    assert report.notes[-1] == "compared with 3 checkpoints of a witness, the last one 3"
    later = Witness(folder, [key.public])
    newer = write(tmp_path, key, 10)[-1]
    assert later.take("e", msgspec.json.encode(newer), NOW) == ""  # 999 does not stand before it
