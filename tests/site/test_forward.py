"""The forwarder beside a backbone in memory: order, confirmations, cursor, retention, what it leaves out and tells."""

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
import structlog
from backbone import fill
from helpers import START, virtual_time

from daemon.config.model import BadConfig, Config, Keeping, parse
from daemon.journal import retention
from daemon.journal.forwarded import (
    AWAY,
    BEHIND,
    DEGRADED,
    Cursor,
    Status,
    alert_of,
    backbone_topic,
    forwarded_of,
    journals_of,
    read_status,
    watch_forwarder,
)
from daemon.journal.reader import page_after
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from daemon.site.ledger_rows import Verdict, result_of
from daemon.site.streams import id_of
from daemon.words import words
from protocols.contract.reasons import Reason, say
from protocols.contract.results import Resolved, Result, encode_verdict
from protocols.contract.topics import decode_wire

pytest.importorskip("nats", reason="no nats-py: make .venv/.backbone")

from daemon.site import forward as module
from daemon.site.backbone import NotConfirmed
from daemon.site.forward import Forwarder

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
NO_ANSWER = say("text", reason="no responders", rows=4, day="2026-11-28", time="12:00")


class Stream:
    """A backbone in memory. It refuses the next `fails` messages, and remembers how many were on their way at once."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, bytes]] = []
        self.fails = 0
        self.refusal = NotConfirmed("no responders", answered=False)
        self.most: Counter[str] = Counter()
        self.flying: Counter[str] = Counter()
        self.nodes = 3, 3

    async def publish(self, subject: str, id_: str, payload: bytes) -> bool:
        self.flying[subject] += 1
        self.most[subject] = max(self.most[subject], self.flying[subject])
        await asyncio.sleep(0)
        self.flying[subject] -= 1
        if self.fails:
            self.fails -= 1
            raise self.refusal
        self.got.append((subject, id_, payload))
        await asyncio.sleep(0.01)  # the confirmation arrives after the row
        return False

    async def nodes_of(self, _stream: str) -> tuple[int, int]:
        return self.nodes

    def of(self, subject: str) -> list[int]:
        """The seq of the messages of a subject."""
        return [decode_wire(payload).seq for one, _, payload in self.got if one == subject]


def configured(folder: Path, more: str = "") -> Config:
    return parse(
        f'[site]\nname = "s"\n[edge]\nname = "e"\njournal = "{folder}/edge.db"\n'
        f'[rules]\njournal = "{folder}/rules.db"\n[backbone]\nservers = ["nats://127.0.0.1:1"]\n'
        f'[forward]\nfolder = "{folder}/forward"\n{more}\n[[table]]\nname = "t-1"\n[[table]]\nname = "t-2"\n'
    )


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.005)


def remove(folder: Path, pattern: str) -> None:
    for one in folder.glob(pattern):
        one.unlink()


def all_sent(config: Config) -> bool:
    """Whether the cursors in `status.json` are at the ends of the journals."""
    status = read_status(Path(config.forward.folder))
    pages = {part: page_after(path, "", 0, 1) for part, path in journals_of(config).items() if path.exists()}
    cursors = {} if status is None else status.cursors
    return {part: (page.journal, page.head) for part, page in pages.items()} == {
        part: (cursor.journal, cursor.n) for part, cursor in cursors.items() if part in pages
    }


async def forwarded(config: Config, stream: Stream, is_so: Callable[[], bool] | None = None) -> None:
    """Run a forwarder until something is so, or all rows are sent and confirmed."""
    is_done = is_so or partial(all_sent, config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STATUS_S", 0.01)
        task = asyncio.create_task(Forwarder(config, stream).run())
        await until(lambda: is_done() or task.done())
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_rows_arrive_in_order_with_one_message_of_a_table_on_its_way(tmp_path: Path) -> None:
    config, stream = configured(tmp_path), Stream()
    stream.fails = 5
    with contextlib.closing(fill(tmp_path / "edge.db", 40)):
        await forwarded(config, stream)
    for table in ("t-1", "t-2"):
        assert stream.of(f"feltd.ev.s.{table}") == list(range(1, 21))
    assert set(stream.most.values()) == {1}
    assert len({id_ for _, id_, _ in stream.got}) == 40


@virtual_time
async def test_five_hundred_tables_are_in_order_beside_each_other_with_the_counts_of_the_journals(
    tmp_path: Path,
) -> None:
    """Each message takes up to two seconds, and one in ten is refused."""
    config, chance, tables = configured(tmp_path), random.Random(38), [f"t-{number}" for number in range(500)]

    class Busy(Stream):
        async def publish(self, subject: str, id_: str, payload: bytes) -> bool:
            self.fails = int(chance.random() < 0.1)
            busiest.append(self.flying.total())
            self.flying[""] += 1
            await asyncio.sleep(chance.uniform(0, 2))
            self.flying[""] -= 1
            return await super().publish(subject, id_, payload)

    busiest, stream = list[int](), Busy()
    with (
        contextlib.closing(Journal(tmp_path / "edge.db")) as edge,
        contextlib.closing(Journal(tmp_path / "rules.db")) as rules,
    ):
        edge.append([Entry(table, "wheel", "ball.landed", START, b"{}") for table in tables for _ in range(4)], {})
        verdicts = []
        for table in tables:
            data = encode_verdict(Resolved(Result(f"{table}:2026-11-20:1", "macau.roulette")))
            verdicts.append(Entry(table, "round", "resolved", START, data, cause=f"e:{table}:4/0@{edge.name}"))
        rules.append(verdicts, {})
        task = asyncio.create_task(Forwarder(config, stream).run())
        while len(stream.got) < 2500:  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
    told: dict[str, list[int]] = {}
    for subject, _, payload in stream.got:
        told.setdefault(subject, []).append(decode_wire(payload).seq)
    assert told == {f"feltd.ev.s.{one}": [1, 2, 3, 4] for one in tables} | {f"feltd.res.s.{one}": [1] for one in tables}
    assert max(busiest) > 100, "tables of a batch do not wait for each other"
    ends = [result_of(subject, payload) for subject, _, payload in stream.got * 2 if ".res." in subject]
    assert len({(one.tbl, one.journal, one.seq, one.n) for one in ends if isinstance(one, Verdict)}) == 500


async def test_a_forwarder_goes_on_where_it_stopped_and_without_its_cursor_from_the_first_row(tmp_path: Path) -> None:
    config, stream = configured(tmp_path), Stream()
    with contextlib.closing(fill(tmp_path / "edge.db", 10)) as journal:
        await forwarded(config, stream)
        journal.append([Entry("t-1", "wheel", "ball.landed", START, b"{}")], {})
        await forwarded(config, stream)
        assert len(stream.got) == 11
        (tmp_path / "forward/status.json").write_bytes(b"torn")
        await forwarded(config, stream)
    assert Counter(id_ for _, id_, _ in stream.got) == Counter({id_: 2 for _, id_, _ in stream.got})
    assert stream.got[0] in stream.got[11:]  # the same bytes


async def test_the_cursor_never_passes_a_row_that_was_not_confirmed(tmp_path: Path) -> None:
    config, stream = configured(tmp_path), Stream()
    stream.fails = 10**9
    with contextlib.closing(fill(tmp_path / "edge.db", 4)) as journal:
        await forwarded(config, stream, lambda: stream.fails < 10**9 - 20)
        status = read_status(tmp_path / "forward")
        assert status is not None
        assert status.cursors["edge"] == Cursor(journal.name, 0)


async def test_closed_files_are_read_and_a_new_journal_begins_at_its_first_row(tmp_path: Path) -> None:
    config, stream = configured(tmp_path), Stream()
    first = fill(tmp_path / "edge.db", 6)
    assert first.rotate()
    first.append([Entry("t-1", "wheel", "ball.landed", START, b"{}")], {})
    first.close()
    await forwarded(config, stream)
    assert len(stream.got) == 7
    remove(tmp_path, "edge*.db*")
    with contextlib.closing(fill(tmp_path / "edge.db", 2)) as second:  # a replaced disk: the same seq come again
        await forwarded(config, stream)
        assert len({id_ for _, id_, _ in stream.got}) == 9
        assert [id_.partition(":")[0] for _, id_, _ in stream.got[7:]] == [second.name] * 2


async def test_a_journal_put_back_from_an_older_copy_is_sent_under_new_ids(tmp_path: Path) -> None:
    """The stream would take rows for repetitions that it never had."""
    config, stream = configured(tmp_path), Stream()
    fill(tmp_path / "edge.db", 3).close()
    copy = (tmp_path / "edge.db").read_bytes()
    with contextlib.closing(Journal(tmp_path / "edge.db")) as journal:
        journal.append([Entry("t-1", "wheel", "ball.landed", START, b'{"pocket":"1"}')], {})
        await forwarded(config, stream)
    remove(tmp_path, "edge.db*")
    (tmp_path / "edge.db").write_bytes(copy)
    with contextlib.closing(Journal(tmp_path / "edge.db")) as journal:
        await forwarded(config, stream)
        journal.append([Entry("t-1", "wheel", "ball.landed", START, b'{"pocket":"2"}')], {})
        await forwarded(config, stream)
    ids = [id_ for _, id_, _ in stream.got]
    assert len(set(ids)) == len(ids) == 8
    assert ids[-1] == f"{ids[3]}~1"


@pytest.mark.parametrize("cards", [False, True])
async def test_events_that_may_name_a_hidden_card_stay_unless_rules_run_at_the_site(
    tmp_path: Path, cards: bool
) -> None:
    config, stream = configured(tmp_path, f"cards = {str(cards).lower()}"), Stream()
    with contextlib.closing(fill(tmp_path / "edge.db", 4, "card.drawn")) as journal:
        journal.append([Entry("t-1", "x", "of.another_version", START, b"{}")], {})
        journal.append([Entry("t-1", "wheel", "ball.landed", START, b"{}")], {})
        await forwarded(config, stream)
    assert {decode_wire(payload).type for *_, payload in stream.got} == (
        {"card.drawn", "of.another_version", "ball.landed"} if cards else {"ball.landed"}
    )


async def test_verdicts_are_sent_under_the_id_of_their_event(tmp_path: Path) -> None:
    """Two replicas count in journals of their own: the second message is a repetition for the stream."""
    config = configured(tmp_path)
    seen = []
    for replica in ("a", "b"):
        stream = Stream()
        with contextlib.closing(Journal(tmp_path / "rules.db")) as journal:
            for _ in range(3 if replica == "b" else 1):
                cause = f"e:t-1:{7 + journal.head}/1@J"
                journal.append([Entry("t-1", "round", "opened", START, b'{"round":"r"}', cause=cause)], {})
            await forwarded(config, stream)
        seen.append(stream.got[0])
        remove(tmp_path, "rules.db*")
        remove(tmp_path, "forward/status.json")
    [(subject, id_), other] = [(subject, id_) for subject, id_, _ in seen]
    assert (subject, id_.rpartition(":")[0]) == ("feltd.res.s.t-1", "J:t-1:7/1")
    assert other == (subject, id_), "two rules that say the same write one id; another result has another digest"
    early = Row(4, "t-1", 4, "round", "opened", START, b"{}", b"", "e:t-1:7/1")
    assert id_of(early, "R") == "R:t-1:4"


async def test_the_books_of_jackpots_are_forwarded_as_they_are_on_mqtt_and_kept_until_then(tmp_path: Path) -> None:
    """Their subject has a word of its own, as a pool may have the name of a table."""
    pool = f'[jackpots]\njournal = "{tmp_path}/books.db"\n[[jackpot]]\nname = "t-1"\ntables = ["t-1"]\nseed = 10\n'
    config, stream = configured(tmp_path, f'{pool}visible = "0.1"\n'), Stream()
    with contextlib.closing(Journal(tmp_path / "books.db")) as journal:
        entries = [Entry("t-1", "jackpot", "reset", START, b'{"number":%d}' % number, cause="c") for number in (1, 2)]
        journal.append(entries, {})
        assert forwarded_of(config, journal)() == 0
        await forwarded(config, stream)
        assert forwarded_of(config, journal)() == 2
        assert [one[:2] for one in stream.got] == [
            ("feltd.res.s.jackpot.t-1", f"{journal.name}:t-1:{n}") for n in (1, 2)
        ]
        wire = decode_wire(stream.got[0][2])
        told = (wire.id, wire.source, wire.type, wire.journal, bytes(wire.data))
        assert told == ("jackpots:t-1:1", "felt/1/s/jackpot/t-1", "reset", journal.name, b'{"number":1}')


async def test_what_is_wrong_is_told_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWAY_S", 0.05), ("STATUS_S", 0.01), ("NODES_EVERY_S", 0.01), ("LOOK_S", 0.01)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    config, stream = configured(tmp_path), Stream()

    def code() -> str:
        status = read_status(tmp_path / "forward")
        return status.code if status is not None else "none"

    stream.fails = 10**9
    with contextlib.closing(fill(tmp_path / "edge.db", 4)):
        task = asyncio.create_task(Forwarder(config, stream).run())
        await until(lambda: code() == AWAY)
        status = read_status(tmp_path / "forward")
        assert status is not None
        assert status.why is not None
        assert (status.why.code, status.why.values["reason"], status.why.values["rows"]) == ("text", "no responders", 4)
        stream.refusal = NotConfirmed("maximum bytes exceeded", answered=True)
        await until(lambda: code() == BEHIND)
        stream.fails, stream.nodes = 0, (2, 3)
        await until(lambda: code() == DEGRADED)
        stream.nodes = 3, 3
        await until(lambda: not code())
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (None, BEHIND),
        (Status(NOW - timedelta(seconds=31)), BEHIND),
        (Status(NOW - timedelta(seconds=29)), ""),
        (Status(NOW, AWAY, NO_ANSWER), AWAY),
        (Status(NOW - timedelta(seconds=31), DEGRADED, say("text", current=2, wanted=3)), BEHIND),
    ],
)
def test_a_forwarder_that_says_nothing_is_behind(status: Status | None, code: str) -> None:
    alert = alert_of(status, NOW, NOW - timedelta(minutes=5))
    assert (alert.code if alert else "") == code
    assert alert is None or alert.remedy
    assert alert_of(None, NOW, NOW - timedelta(seconds=29)) is None  # it may still be starting


async def test_the_edge_raises_the_alert_at_its_tables_and_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, said = configured(tmp_path), dict[str, bytes]()
    (tmp_path / "forward").mkdir()
    looks = asyncio.Queue[None]()
    monkeypatch.setattr("daemon.journal.forwarded.pulse", lambda _s: looks.get())

    def tell(status: Status) -> None:
        (tmp_path / "forward/status.json").write_bytes(msgspec.json.encode(status))

    tell(Status(datetime.now(UTC), AWAY, NO_ANSWER))
    task = asyncio.create_task(watch_forwarder(config, "e", said.__setitem__, structlog.get_logger()))
    await asyncio.sleep(0)
    topics = [backbone_topic("s", table, "e") for table in ("t-1", "t-2")]
    assert [msgspec.json.decode(said[topic])["code"] for topic in topics] == [AWAY, AWAY]
    tell(Status(datetime.now(UTC)))
    looks.put_nowait(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [said[topic] for topic in topics] == [b"", b""]
    task.cancel()
    await asyncio.wait([task])


def test_a_journal_keeps_what_was_not_forwarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old, published and no room: its file goes when the cursor has passed it, and not before."""
    config, keeping = configured(tmp_path), Keeping(limit_mb=1, keep_days=90)
    with contextlib.closing(fill(tmp_path / "edge.db", 3)) as journal:
        assert journal.rotate()
        journal.append([], {"outbox": b"3"})
        monkeypatch.setattr(Journal, "age", lambda *_: timedelta(days=100))
        monkeypatch.setattr(retention, "room", lambda *_: retention.Room(9, 10, by_disk=False))
        asked = forwarded_of(config, journal)
        (tmp_path / "forward").mkdir()
        for cursor in (None, Cursor("another", 3), Cursor(journal.name, 2)):
            cursors = {} if cursor is None else {"edge": cursor}
            (tmp_path / "forward/status.json").write_bytes(msgspec.json.encode(Status(NOW, cursors=cursors)))
            assert retention._forget(journal, keeping, NOW, asked()) == []
        status = Status(NOW, cursors={"edge": Cursor(journal.name, 3)})
        (tmp_path / "forward/status.json").write_bytes(msgspec.json.encode(status))
        assert len(retention._forget(journal, keeping, NOW, asked())) == 1


def test_a_table_computer_without_a_site_installs_and_loads_nothing_of_it(tmp_path: Path) -> None:
    installed = (ROOT / "requirements/runtime.txt").read_text(encoding="utf-8")
    assert not [name for name in ("nats", "psycopg") if f"\n{name}" in installed]
    config = tmp_path / "feltd.toml"
    config.write_text('[site]\nname = "s"\n[edge]\nname = "e"\n')
    program = (
        "import sys\nfrom daemon.cli import main, processes, console, doctor_facts\nimport daemon.edge.edge\n"
        "import daemon.consumer.consumer, daemon.console.app, daemon.jackpots.process\n"
        "from daemon.config.model import load\nfrom pathlib import Path\n"
        f"doctor_facts._backbone(load(Path({str(config)!r})))\n"
        "print([one for one in sys.modules if one.partition('.')[0] in ('nats', 'psycopg') or one == 'daemon.site'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[backbone]\nservers = ["10.0.0.1:4222"]', "is no address of a node"),
        ('[backbone]\nservers = ["nats://10.0.0.1:4222"]', "without TLS passwords and results pass in clear"),
        ('[backbone]\nmonitors = ["nats://10.0.0.1"]', "is no address of a node"),
        ('[forward]\ncertificate = "/c"', "one without the other"),
        ('[ledger]\nusername = "u"', "one without the other"),
        ('[forward]\ncertificate = "/c"\nkey = "/k"', "name backbone.ca_file, too"),
    ],
)
def test_mistakes_of_the_configuration_are_named_with_their_line(text: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said) as found:
        parse(f'[site]\nname = "s"\n[edge]\nname = "e"\n{text}\n')
    assert found.value.mistakes[0].line > 4


def test_what_is_told_has_words_in_every_language() -> None:
    told = [
        Status(NOW, AWAY, NO_ANSWER),
        Status(NOW, BEHIND, Reason("refused", NO_ANSWER.values)),
        Status(NOW, BEHIND, say("unread", reason="/j: database is locked")),
        Status(NOW, DEGRADED, say("text", current=2, wanted=3)),
        None,
    ]
    for status in told:
        alert = alert_of(status, NOW, NOW - timedelta(hours=1))
        assert alert is not None
        for one in (alert.why, alert.to_do):
            assert len({words.reason(lang, one, alert.code) for lang in words.LANGS}) == len(words.LANGS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_of_its_own_reads_a_journal_that_is_in_use_and_writes_nothing(tmp_path: Path) -> None:
    """As the units have it: the folder and its files belong to the group of their process."""
    others = 12345
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with contextlib.closing(fill(folder / "edge.db", 3)):
            for one in (folder, *folder.iterdir()):
                os.chown(one, 0, others)
                one.chmod(0o750 if one.is_dir() else 0o640)
            before = sorted(one.name for one in folder.iterdir())
            read, write = os.pipe()
            if (child := os.fork()) == 0:
                try:
                    os.setgroups([])
                    os.setgid(others)
                    os.setuid(54321)
                    page = page_after(folder / "edge.db", page_after(folder / "edge.db", "", 0, 9).journal, 1, 9)
                    os.write(write, b"%d" % len(page.rows))
                except BaseException as error:  # noqa: BLE001 - the parent says it
                    os.write(write, repr(error).encode())
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            assert os.read(read, 1000) == b"2"
            assert sorted(one.name for one in folder.iterdir()) == before
