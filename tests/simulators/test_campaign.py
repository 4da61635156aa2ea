"""The campaign: it is deterministic, it passes what is sound, and it finds what is planted."""

import asyncio
import contextlib
import copy
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import structlog
from click.testing import CliRunner
from helpers import PATIENCE, at_length

from daemon import logs
from daemon.broker.gap_recovery import Stream
from daemon.broker.outbox import Outbox
from daemon.broker.session import Message, Session
from daemon.cli.main import main
from daemon.config.model import Mqtt
from daemon.consumer.consumer import Consumer
from daemon.edge.device_session import DeviceSession
from daemon.journal.rows import Entry, Row
from daemon.journal.sent import HELD, KEY
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from drivers.cammegh_ss2 import CammeghSS2
from drivers.sas_machine import SasMachine
from protocols.contract.events import BallLanded, DeviceOnline, JackpotWon, SpinMissed, SpinStarted
from protocols.contract.results import Result
from protocols.contract.topics import Envelope, Wire, encode_wire
from simulators.devices.cammegh_ss2 import SpinTruth
from simulators.lab.broker import find_mosquitto
from simulators.lab.campaign import campaign as campaign_module, real as campaign_real
from simulators.lab.campaign.broker import Broker, matches
from simulators.lab.campaign.campaign import INTERRUPTED, Life, campaign, forgot, live
from simulators.lab.campaign.disk import Disk, Fate, Ledger
from simulators.lab.campaign.loop import Killed, Process, StandingStillError, VirtualLoop
from simulators.lab.campaign.real import real
from simulators.lab.pit import EDGE, KINDS, SITE, Pit
from simulators.tables.devices import IN_DOUBT
from tests.drivers.test_cammegh_ss2 import every, line, listen

ROUNDS = 4
CALM = 31
"""A seed of a life's nature without faults."""
THREE = ("rou", "cus", "bac")
"""What the pit was when some of the lives below were found."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A short life is enough."""
    logs.set_up("critical")
    monkeypatch.setattr(campaign_module, "ROUNDS", ROUNDS)
    yield
    structlog.reset_defaults()


# ---- the loop


def run(body: Callable[[VirtualLoop], Any]) -> VirtualLoop:
    loop = VirtualLoop(10_000)
    try:
        loop.run_until_complete(body(loop))
    finally:
        loop.close()
    return loop


def test_a_killed_process_takes_no_further_step() -> None:
    """Neither its tasks nor the clauses that would end them: a dead process does nothing."""
    did: list[str] = []

    async def work(name: str) -> None:
        try:
            for number in range(100):
                did.append(f"{name}{number}")
                await asyncio.sleep(1)
        finally:
            did.append("ended in order")

    async def body(loop: VirtualLoop) -> None:
        process = Process("one", loop)
        process.kill_at = 7

        async def both() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(work("a"))
                group.create_task(work("b"))

        process.start(both())
        assert await process.over is None
        assert process.how == "killed at an await"
        before = list(did)
        await asyncio.sleep(1000)
        assert did == before
        assert "ended in order" not in did

    run(body)


@pytest.mark.parametrize("step", range(1, 6))
def test_a_process_can_be_killed_at_each_of_its_steps(step: int) -> None:
    async def body(loop: VirtualLoop) -> None:
        process = Process("one", loop)
        process.kill_at = step
        process.start(asyncio.sleep(0.0))
        await process.over
        assert process.steps == min(step, 2)
        assert bool(process.how) == (step <= 2)

    run(body)


def test_a_process_that_ends_says_how() -> None:
    async def fails() -> None:
        raise ValueError("x")

    async def body(loop: VirtualLoop) -> None:
        process = Process("one", loop)
        process.start(fails())
        assert isinstance(await process.over, ValueError)

    run(body)


def test_a_world_that_stands_still_or_turns_in_circles_is_told() -> None:
    async def waits(_loop: VirtualLoop) -> None:
        await asyncio.Event().wait()

    async def turns(_loop: VirtualLoop) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    for body in (waits, turns):
        with pytest.raises(StandingStillError):
            run(body)


@pytest.mark.parametrize(
    ("filter_", "topic", "heard"),
    [
        ("a/+/c", "a/b/c", True),
        ("a/+/c", "a/b/d", False),
        ("a/#", "a/b/c", True),
        ("a/+", "a/b/c", False),
        ("a/b/c/+", "a/b/c", False),
    ],
)
def test_subscriptions(filter_: str, topic: str, heard: bool) -> None:
    assert matches(filter_, topic) is heard


# ---- what is sound passes, and always the same way


@pytest.mark.parametrize("echoes", [False, True])
def test_a_client_hears_of_its_own_topics_what_others_write(echoes: bool) -> None:
    """As with No Local of MQTT 5; with MQTT 3.1.1 what it writes itself, too."""
    heard: dict[str, list[bytes]] = {"one": [], "other": []}

    def by(name: str) -> Callable[[Message], None]:
        return lambda message: heard[name].append(message.payload)

    async def body(loop: VirtualLoop) -> None:
        broker = Broker(loop, random.Random(1), lambda _: None)
        broker.weather.echoes = echoes
        async with contextlib.AsyncExitStack() as stack:
            for name in heard:
                session = await stack.enter_async_context(broker.connect(Mqtt(), name))
                session.own_topics = frozenset({f"state/{name}"})
                session.deliver_to(by(name))
                await session.subscribe("state/one", "state/other", "all/#")
                await session.publish("state/one", name.encode())
                await session.publish("all/x", name.encode())
                await asyncio.sleep(1)

    run(body)
    own = [b"one"] if echoes else []
    assert heard["one"] == [*own, b"one", b"other", b"other"]
    assert heard["other"] == [b"other", b"other"]


@pytest.mark.parametrize("seed", range(*at_length((500_001, 500_002), (500_001, 500_011))))
def test_power_cuts_in_the_writes_of_every_process(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is published was synced before: of the write under way any sectors are lost. The nights are 1 000 cuts."""

    def soon(self: Life, _process: Process, _name: str) -> Fate:
        return Fate() if self._healing else Fate(2 + int(self._kills.expovariate(1 / 15)), "power")

    monkeypatch.setattr(campaign_module, "ROUNDS", at_length(4, 40))
    monkeypatch.setattr(Life, "_fate", soon)
    life, failure = live(seed)
    assert failure is None, failure
    assert sum(count for fault, count in life.injected.items() if "power cut" in fault) > at_length(10, 100)


def test_a_slice_of_the_campaign() -> None:
    rounds = at_length(80, 1500)
    *_, report = campaign(rounds, 7)
    assert report.failures == []
    assert report.rounds >= rounds
    assert report.lost == report.doubled == report.wrong == 0
    assert report.right > rounds // 2
    assert report.faults == report.survived
    assert len(report.faults) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_table_has_its_lives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_module, "PLAYED", (kind,))
    for seed in at_length((7,), (7, 21, 35, 49)):
        life, failure = live(seed, 6)
        assert failure is None
        # A wheel may spin once more until somebody closes it; a machine that is out of service has no jackpot.
        assert life.pit.dealt()[f"{kind}-1"] >= (3 if kind == "slot" else 6)


def test_a_row_held_by_a_write_that_the_process_did_not_live_to_see_is_known_as_held(tmp_path: Path) -> None:
    loop, ledger = VirtualLoop(), Ledger(EDGE)
    with contextlib.closing(loop):
        disk = Disk(tmp_path / "edge.db", Process(EDGE, loop), Fate(1, "after"), ledger, f"{EDGE}:", random.Random(1))
        entry = Entry("t", "shoe", "card.drawn", datetime(2026, 1, 1, tzinfo=UTC), b"{}")
        with pytest.raises(Killed):
            disk.append([entry], {KEY: b"0", HELD: b'{"t":1}'})
        disk.close()
        again = Disk(tmp_path / "edge.db", Process(EDGE, loop), Fate(), ledger, f"{EDGE}:", random.Random(1))
        again.append([], {KEY: b"1"})
        assert ledger.wrong == ""
        with pytest.raises(Killed):
            again.append([], {KEY: b"1", HELD: b"{}"})
        assert ledger.wrong == f"{EDGE}: the cursor is 1, the broker did not take row 1"
        again.close()


TELL = """
from daemon import logs
from simulators.lab.campaign import campaign as c
logs.set_up("critical")
life, failure = c.live(%d, 4)
rows = [ledger.rows for ledger in life.ledgers.values()]
import hashlib
print(life.loop.steps, life.loop.time(), hashlib.sha256(repr(rows).encode()).hexdigest(), life.story, failure)
"""


@pytest.mark.parametrize("seed", at_length([7], [7, 21]))
def test_a_life_is_the_same_in_every_process(seed: int) -> None:
    """Step for step and byte for byte, whatever Python hashes and wherever things lie in memory."""
    said = {
        subprocess.run(
            [sys.executable, "-c", TELL % seed],
            env={**os.environ, "PYTHONHASHSEED": hashing, "PYTHONMALLOC": malloc},
            capture_output=True, check=True,
        ).stdout
        for hashing, malloc in (("1", "malloc"), ("2", "pymalloc"))
    }  # fmt: skip
    assert len(said) == 1


def test_neighbours_of_a_refused_table_play_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker's access list loses one table at a time, and nothing else goes wrong."""
    calm = campaign_module._Nature(random.Random(CALM))
    assert calm.calm
    calm.denied = 20.0
    monkeypatch.setattr(campaign_module, "_Nature", lambda _rng: calm)
    *_, report = campaign(at_length(40, 400), 3)
    assert report.failures == []
    assert report.faults["access list: loses a table"] > 1
    assert report.right > report.rounds // 2


def test_the_command_says_what_was_survived() -> None:
    shown = CliRunner().invoke(main, ["campaign", "--rounds", "8", "--seed", "2", "--jobs", "1"])
    assert shown.exit_code == 0, shown.output
    assert "0 lost, 0 doubled, 0 wrong" in shown.output
    told = CliRunner().invoke(main, ["campaign", "--rounds", "8", "--seed", "2", "--jobs", "1", "--json"])
    report = msgspec.json.decode(told.stdout)
    assert report["wrong"] == report["lost"] == 0
    assert report["lives"] >= 1
    again = CliRunner().invoke(main, ["campaign", "--replay", "2000000"])
    assert again.exit_code == 0, again.output
    assert "life 2000000" in again.output


SHORT_LIVES = """
import contextlib, os, signal, sys, time
from daemon.cli.main import main
from simulators.lab.campaign import campaign
campaign.ROUNDS, campaign.AHEAD = 2, 2
first, process, handle = sys.argv.pop(), os.getpid(), signal.signal
def handled(*words):
    with contextlib.suppress(FileExistsError):
        if os.getpid() != process:
            os.mkdir(first)
            while signal.SIGINT not in signal.sigpending():
                time.sleep(0.01)
    return handle(*words)
signal.signal = handled
main()
"""
"""The first of the workers is not ready before Ctrl-C."""


@pytest.mark.parametrize("jobs", at_length(["2"], ["1", "2"]))
def test_an_interrupted_campaign_tells_what_it_came_to(tmp_path: Path, jobs: str) -> None:
    """Ctrl-C goes to the workers too, as from a terminal; nothing but the report is said."""
    command = [sys.executable, "-c", SHORT_LIVES, "campaign", "--rounds", "20000", "--seed", "2", "--jobs", jobs]
    command.append(str(tmp_path / "first"))
    master, slave = os.openpty()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        start_new_session=True,
        preexec_fn=_interruptible,  # noqa: PLW1509 - it does one thing
    ) as campaigning:
        try:
            os.close(slave)
            shown = bytearray()
            while b"lives" not in shown:  # the bar, on a terminal
                shown += os.read(master, 4096)
            # Somebody goes on looking: a bar that nobody reads stands still, and so does who draws it.
            looking = threading.Thread(target=_all_of, args=(master, shown))
            looking.start()
            os.killpg(campaigning.pid, signal.SIGINT)
            said = campaigning.communicate()[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(campaigning.pid, signal.SIGKILL)
    looking.join(PATIENCE)
    os.close(master)
    assert campaigning.returncode == INTERRUPTED
    assert "0 lost, 0 doubled, 0 wrong" in said
    assert "interrupted after" in said
    assert re.search(r"--rounds [0-9]+ --seed 2 --after [1-9]", said)
    assert b"Traceback" not in shown


@pytest.mark.parametrize(("asked", "code"), [(50, 0), (51, INTERRUPTED)])
def test_an_interrupted_campaign_says_how_it_goes_on(
    asked: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the JSON, too; but not while its processes end after the last round that was asked for."""

    def lives(*_: object, **__: object) -> Iterator[campaign_module.Report]:
        yield campaign_module.Report(7, 3, lives=2, rounds=50)
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign_module, "campaign", lives)
    assert campaign_module.run(asked, 7, after=3, as_json=True) == code
    out, err = capsys.readouterr()
    assert msgspec.json.decode(out)["after"] == 3
    said = "interrupted after 50 of 51 rounds; the rest: feltd campaign --rounds 1 --seed 7 --after 5\n"
    assert err == (said if code else "")


def _all_of(master: int, shown: bytearray) -> None:
    with contextlib.suppress(OSError):  # the other end is closed: that was all
        while True:
            shown += os.read(master, 4096)


def _interruptible() -> None:
    """Who runs these tests in the background ignores Ctrl-C, and so would what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_lives_in_worker_processes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_module, "AHEAD", 2)
    (*_, alone), (*_, shared) = campaign(ROUNDS * 9, 8), campaign(ROUNDS * 9, 8, jobs=2)
    alone.seconds = shared.seconds = 0.0
    assert alone == shared


def test_an_interrupted_campaign_goes_on_as_if_it_had_not_been() -> None:
    lives = campaign(40, 8)
    before = copy.deepcopy(next(lives))
    *_, whole = lives
    *_, rest = campaign(40 - before.rounds, 8, after=before.lives)
    assert (rest.after, rest.lives) == (1, whole.lives - 1)
    before.add(rest)
    before.seconds = whole.seconds = 0.0
    assert before.play == pytest.approx(whole.play)  # it is added up in another order
    before.play = whole.play
    assert before == whole


@pytest.mark.parametrize("other", [["--real"], ["--replay", "2000000"]])
def test_only_a_virtual_campaign_goes_on(other: list[str]) -> None:
    refused = CliRunner().invoke(main, ["campaign", "--after", "3", *other])
    assert refused.exit_code == 2
    assert "--after: neither with --real nor with --replay" in refused.output


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_real_processes_are_killed() -> None:
    kills = at_length(1, 3)
    report = await real(kills, 5, rounds=2, tables=("rou", "bac"))
    assert report.failures == []
    assert sum(report.kills.values()) == kills
    assert report.rounds >= 4
    assert report.lost == report.doubled == report.wrong == 0
    assert report.right + report.void == report.rounds
    assert {kind: count.rounds for kind, count in report.kinds.items()} == {
        "rou": 2 * report.nights,
        "bac": 2 * report.nights,
    }


async def test_kills_are_spread_over_the_nights_that_the_rounds_take(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[int] = []

    class Night:
        def __init__(self, report: campaign_real.Report, *told: Any) -> None:
            _, _, self.kills, rounds, tables, copies = told
            self.report, self.rounds = report, rounds * len(tables) * copies

        async def body(self) -> None:
            shares.append(self.kills)
            self.report.rounds += self.rounds
            done = self.kills - (len(shares) == 1)  # the first night is over before its last kill
            self.report.kills["edge"] = self.report.kills.get("edge", 0) + done

    monkeypatch.setattr(campaign_real, "_Night", Night)
    await real(10, 5, rounds=5, tables=("bac", "cus"), copies=2, least=60)
    assert shares == [4, 4, 3]


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_a_real_round_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the files of its night are kept."""
    heard = Pit.heard

    def deaf(self: Pit, table: str, kind: str, result: Result) -> None:
        if not result.round.endswith(":1"):
            heard(self, table, kind, result)

    monkeypatch.setattr(Pit, "heard", deaf)
    monkeypatch.setattr(campaign_real, "RESULT_TIMEOUT_S", 1.0)
    report = await real(1, 5, rounds=2, tables=("cus",), most_failures=1)
    [failure] = report.failures
    assert re.search("[12] lost", failure), "on a busy computer the other one may be late"
    kept = Path(failure.rpartition(" ")[2])
    assert (kept / "edge.db").exists()
    await asyncio.to_thread(shutil.rmtree, kept)


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
async def test_real_dealers_who_stand_still_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a night takes, but not one in which no round ends any more."""

    async def stands(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Pit, "_deal", stands)
    monkeypatch.setattr(campaign_real, "STILL", 0.5)
    report = await real(1, 5, rounds=2, tables=("cus",), most_failures=1)
    [failure] = report.failures
    assert "have stopped" in failure
    await asyncio.to_thread(shutil.rmtree, failure.rpartition(" ")[2])


def test_an_unknown_kind_of_table_is_refused_with_those_that_there_are() -> None:
    refused = CliRunner().invoke(main, ["campaign", "--real", "--tables", "bac,bar"])
    assert refused.exit_code == 2
    assert "--tables: there is no table bar; there are abac, " in refused.output


@pytest.mark.parametrize(
    "wrong", [["--kills", "3"], ["--tables", "bac"], ["--copies", "2"], ["--real", "--replay", "3"]]
)
def test_impossible_campaign_options_are_refused(wrong: list[str]) -> None:
    assert CliRunner().invoke(main, ["campaign", *wrong]).exit_code == 2


# ---- what is planted is found


def found(most: int, first: int = 0) -> str:
    """What the first life that fails says, among so many. `first`: the one that found it last."""
    for seed in (*range(first, most), *range(first)):
        _, failure = live(seed, 8)
        if failure is not None:
            return failure.what
    return ""


def test_a_consumer_that_takes_duplicates_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Stream.take

    def believing(self: Stream[Any], item: Any) -> list[Any]:
        return [item] if item.seq < self.expected else take(self, item)

    monkeypatch.setattr(Stream, "take", believing)
    assert found(30)


def test_a_consumer_that_does_not_ask_for_gaps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: Stream[Any], item: Any) -> list[Any]:
        if item.seq < self.expected:
            return []
        self.expected = item.seq + 1
        return [item]

    monkeypatch.setattr(Stream, "take", careless)
    assert found(30, first=2)


def test_an_outbox_that_counts_what_it_sent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Outbox._send

    def advancing(self: Outbox, session: Session, row: Row) -> None:
        send(self, session, row)
        self.cursor = max(self.cursor, row.n)

    monkeypatch.setattr(Outbox, "_send", advancing)
    assert "the cursor is" in found(30, first=5)


def test_a_journal_that_returns_before_its_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it wrote last is written in truth with the next."""
    append = Journal.append

    def lazy(self: Journal, entries: Iterable[Entry], memory: Mapping[str, bytes] | None = None) -> list[Row]:
        if not isinstance(self, Disk) or self._process is None:
            return append(self, entries, memory)
        process = self._process
        real = self._db

        class NoCommit:
            def execute(self, statement: str, *values: Any) -> Any:
                if statement.startswith("BEGIN") and real.in_transaction:
                    return None
                return (
                    None if statement.startswith("COMMIT") and process.steps % 7 else real.execute(statement, *values)
                )

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        self._db = NoCommit()  # type: ignore[assignment]
        try:
            return append(self, entries, memory)
        finally:
            self._db = real

    monkeypatch.setattr(Journal, "append", lazy)
    assert "survived" in found(30, first=3)


@pytest.mark.timeout(900)  # it plays on until it has found it
def test_a_drivers_memory_beside_the_transaction_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written down first, and the events after it: who dies in between has lost them."""
    emit = DeviceSession.emit

    async def apart(self: DeviceSession, sightings: Any, memory: bytes | None = None) -> None:
        if memory is not None and sightings:
            self._edge.append([], {f"driver/{self._key}": memory})
        await emit(self, sightings, memory)

    def often(self: Life, _process: Process, name: str) -> Fate:
        """Only the edge dies, and always just after a write."""
        if name != EDGE or self._healing:
            return Fate()
        return Fate(1 + int(self._kills.expovariate(1 / 15)), "after")

    monkeypatch.setattr(DeviceSession, "emit", apart)
    monkeypatch.setattr(Life, "_fate", often)
    assert found(100)


def test_a_consumer_that_publishes_what_is_not_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its position is durable before its verdicts: who dies in between never says them."""
    commit = Consumer._commit

    def hasty(self: Consumer, entries: list[Entry]) -> None:
        if entries:
            commit(self, [])
        commit(self, entries)

    monkeypatch.setattr(Consumer, "_commit", hasty)
    assert found(60, first=5)


def test_a_wheel_that_is_told_to_have_missed_what_it_did_not_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost by it, and no number is wrong: void rounds beside those that were."""
    counted = CammeghSS2._counted

    def doubting(self: CammeghSS2, *args: Any) -> Any:
        spin, events = counted(self, *args)
        return spin, [*events, SpinMissed(1)] if spin.spin == 3 else events

    monkeypatch.setattr(campaign_module, "PLAYED", ("rou",))
    monkeypatch.setattr(CammeghSS2, "_counted", doubting)
    assert "spins were reported as ended" in found(5, first=2)


def test_a_jackpot_that_is_told_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    paid = SasMachine._paid

    def again(self: SasMachine, level: int, amount: int) -> Any:
        return [*paid(self, level, amount), JackpotWon("machine", level, amount=amount)]

    monkeypatch.setattr(campaign_module, "PLAYED", ("slot",))
    monkeypatch.setattr(SasMachine, "_paid", again)
    assert re.search("slot-1: 0 lost, [1-9] wrong", found(3))
    assert {fault.code for fault in SasMachine.faults} >= set(IN_DOUBT)


def test_rules_that_say_another_number_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One consumer reads one event otherwise."""
    apply = Consumer._apply

    def otherwise(self: Consumer, table: Any, stream: Any, envelope: Envelope, *rest: Any) -> None:
        if self.name == "standby" and envelope.seq == 20:
            return
        apply(self, table, stream, envelope, *rest)

    monkeypatch.setattr(Consumer, "_apply", otherwise)
    assert found(5)


@pytest.mark.parametrize(
    ("spins", "unheard", "count"),
    [
        ("5 6 7 8", {1, 2}, 0),  # the counter proves them
        ("5 6 7 1", {1, 2}, 2),
        ("5 6 7v 1", {1, 2}, 1),  # void, whoever heard it
        ("5 6 1 2", {2}, 0),  # heard before, and the first of the new ones is proven by the second
        ("5 6 7 1", {1}, 0),
        ("5 6 7", {1, 2}, 0),
        ("1 1 2", {1}, 1),  # began again, and counted as far as it had been
        ("2 1 2", {1}, 0),  # as far again: a number is told once, so that proves the one between
        ("3 4 1 2 3", {1, 2, 3}, 1),
        ("2v 1 2", {1}, 1),  # spun again under its number, for all that anybody knows
        ("1 2v 1 2 3", {0, 2, 3}, 3),
        ("1 2 3 4", {0, 1, 2}, 3),  # nobody had ever heard it
        ("5 6 7 |", {1, 2}, 2),  # it was switched off, and never spun again
        ("5 6 7v |", {1, 2}, 1),
        ("5 6 7 |", {1}, 0),
    ],
)
def test_spins_forgotten_by_the_wheel_before_they_were_read(spins: str, unheard: set[int], count: int) -> None:
    """Lives 2102000177 and 2102000280: it was switched off while the edge was away. No other round may be missing.

    20261121008253, 20261121009512, 20261121011874: then it counted on as if nothing had been, or none had been heard.
    74013107: it was never heard to spin again.
    """
    told, began_again = spins.removesuffix("|").split(), spins.endswith("|")
    made = [SpinTruth(int(one[0]), reason="x") if "v" in one else SpinTruth(int(one), "17") for one in told]
    assert forgot(made, unheard, began_again=began_again) == count


def test_a_lost_round_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Life._rounds_right

    def without(self: Life) -> None:
        for outcomes in self.pit.outcomes.values():
            del outcomes[1:2]
        judge(self)

    monkeypatch.setattr(Life, "_rounds_right", without)
    assert "1 lost" in found(1)


# ---- what it found


def test_a_number_of_the_next_spin_is_never_told_of_this_one() -> None:
    """Killed at a spin's first line with a number, and back at the next spin's: life 21, a wrong result."""
    first = listen(every([*[line(2, 7)] * 2, line(3, 7), *[line(4, 7)] * 2]))
    second = listen(every([line(5, 7, "6")]), memory=first.notebook.memory)
    seen = [line(5, 8, "17"), b"17\r\n" + line(5, 8, "17"), *[line(1, 9, "17")] * 2]
    third = listen(every(seen), memory=second.notebook.memory)
    told = [*first.spins, *second.spins, *third.spins]
    assert not [event for event in told if isinstance(event, BallLanded)]
    assert sum(event.count for event in told if isinstance(event, SpinMissed)) == 2


def test_a_void_spin_that_was_spun_again_unseen_is_missed() -> None:
    """Its counter went on, so it ended with a number: life 3000041, a lost round."""
    seen = [*[line(2, 9)] * 2, *[line(3, 9, flags=2)] * 2, *[line(2, 10)] * 2]
    told = listen(every(seen)).spins
    assert [event for event in told if isinstance(event, SpinMissed)] == [SpinMissed(1)]
    assert told[-1] == SpinStarted(10)


def test_a_wheel_is_online_together_with_its_counter() -> None:
    """Killed between the first line and the second, a spin went by and nobody said so: life 4088, a lost round."""
    first = listen(every([line(2, 7)]))
    assert first.events == []
    spinning = every([*[line(2, 7)] * 3, *[line(3, 7)] * 3])
    for lines in range(2, len(spinning) + 1):
        first = listen(spinning[:lines])
        assert isinstance(first.events[0], DeviceOnline)
        second = listen(every([line(2, 8)] * 2), memory=first.notebook.memory)
        assert isinstance(second.events[0], DeviceOnline)
        assert second.events[1:] == [SpinMissed(1), SpinStarted(8)]


@pytest.mark.parametrize("from_start", [False, True])
@pytest.mark.parametrize("lost", [{3}, {5}, {3, 4, 5}])
@pytest.mark.parametrize("requests", [0, 1, 4])
def test_the_picture_asks_again_where_its_request_is_lost(lost: set[int], requests: int, from_start: bool) -> None:
    """It asked once, and where that was lost the gap stayed until the next connection: also at the very end."""
    seen: list[str] = []
    asked: list[float] = []
    table = f"felt/1/{SITE}/table/t/round"

    async def body(loop: VirtualLoop) -> None:
        broker = Broker(loop, random.Random(1), lambda _: None)
        site = SiteState(Mqtt(), SITE, from_start=from_start, connect=broker.connect)
        site.on_result.append(lambda _table, _type, result: seen.append(result.round))
        looking = asyncio.create_task(site.run("picture"))
        await asyncio.sleep(1)

        def publish(n: int) -> None:
            data = msgspec.Raw(b'{"result":{"round":"%d"}}' % n)
            wire = Wire("1.0", f"e:t:{n}/0", "s", "resolved", loop.utc(), n, "", "R", False, data)
            broker.take("rules", f"{table}/event/resolved", encode_wire(wire), False)

        def answer(_identifier: str, topic: str, payload: bytes) -> None:
            if topic == f"{table}/cmd/replay":
                asked.append(loop.time())
                if len(asked) > requests:
                    request = msgspec.json.decode(payload)
                    for n in range(request["from"], (request["to"] or 5) + 1):
                        loop.call_soon(publish, n)

        broker.on_taken = answer
        for n in range(1, 6):
            if n not in lost:
                publish(n)
            broker.take("rules", f"{table}/result", b'{"round":"%d"}' % n, True)
            await asyncio.sleep(1)
        await asyncio.sleep(100)
        looking.cancel()
        await asyncio.wait([looking])

    run(body)
    assert seen == ["1", "2", "3", "4", "5"]
    assert requests < len(asked) <= requests + 2


def test_unanswered_replay_requests_back_off() -> None:
    stream: Stream[Any] = Stream(1)
    stream.take(SimpleNamespace(seq=2))
    times = [now for now in range(1000) if stream.to_ask(float(now))]
    assert times[:5] == [0, 2, 6, 14, 30]
    assert {b - a for a, b in pairwise(times[5:])} == {30}
    stream.take(SimpleNamespace(seq=1))
    assert stream.to_ask(1000.0) is None
    stream.take(SimpleNamespace(seq=4))
    assert stream.to_ask(1000.0) == (3, 3)


def test_the_dealers_own_line_lights_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was the last to connect, and nobody who waited for it was woken: life 501000017, dealers who stand still."""
    monkeypatch.setattr(campaign_module, "PLAYED", THREE)
    _, failure = live(501000017, 1)
    assert failure is None


def test_no_dealer_leaves_a_round_that_waits_for_him(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console lost its memory in the last spin: suspended, and nobody there to void it: life 701000042."""
    monkeypatch.setattr(campaign_module, "PLAYED", THREE)
    _, failure = live(701000042, 24)
    assert failure is None


def test_a_machine_that_was_open_at_midnight_has_a_period_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the edge went over midnight before the first game: life 38000030."""
    monkeypatch.setattr(campaign_module, "PLAYED", ("chemin", "holdem", "omaha", "synth", "mach"))
    life, failure = live(38000030, 1)
    assert failure is None
    first, second = life.pit.outcomes["mach-1"]
    assert (first.round, first.settled, second.round) == ("mach-1:2025-12-31:1", (), "mach-1:2026-01-01:1")


def test_the_period_of_a_gaming_machine_begins_with_its_first_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle machine reports no meters: a dealer who waits for an open period before any game waits for minutes."""
    monkeypatch.setattr(campaign_module, "PLAYED", ("mach",))
    life, failure = live(6000002, 6)
    assert failure is None
    assert life.loop.time() < 300
    assert sum("counted" in one.outcome for one in life.pit.tables["mach-1"].truth) >= 4


def test_an_attendant_closes_a_gaming_machine_until_the_display_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both keys were lost in an outage, and the period went on unseen: life 42000163."""
    monkeypatch.setattr(campaign_module, "PLAYED", ("chemin", "holdem", "omaha", "synth", "mach"))
    _, failure = live(42000163)
    assert failure is None


def test_a_period_that_a_further_key_closed_unseen_is_counted_too() -> None:
    """The attendant did not see that his first key had ended the period, and the next one had begun: life 51000111."""
    _, failure = live(51000111)
    assert failure is None


def test_a_poker_player_whose_leaving_was_lost_leaves_once_more() -> None:
    """The display was empty when he left, so that the dealer took it for done; the next hand began with him."""
    _, failure = live(62000057)
    assert failure is None


def test_virtual_loop_takes_the_name_of_a_task_with_its_coroutine() -> None:
    """As Python 3.13.3, and 3.14 and later, hand it to a factory of tasks."""

    async def nothing() -> None:
        pass

    loop = VirtualLoop()
    task = loop._make_task(loop, nothing(), name="dealer")
    loop.run_until_complete(task)
    assert task.get_name() == "dealer"
    loop.close()


def test_nothing_in_a_process_catches_its_death() -> None:
    assert not issubclass(Killed, Exception)
