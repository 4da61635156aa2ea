"""The ended rounds in the console's store: by date, with their versions, complete or with gaps that are known."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from hypothesis import given, strategies as st

from daemon.broker.session import Message
from daemon.config.model import parse
from daemon.console.site import rounds
from daemon.console.site.rounds import Asked, Interval, Records, Rounds
from daemon.console.site.store import Store
from daemon.read_model import ROUNDS, SiteState
from protocols.contract.topics import Wire, encode_wire
from protocols.contract.wagers import WagerAnswer

NOW = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
CONFIG = parse(
    '[site]\nname = "lisboa"\n[edge]\nname = "edge-7"\n[[table]]\nname = "rou-3"\nruleset = "macau.roulette"\n'
)
ROU = "rou-3"
EVER = Asked(ROU, NOW - timedelta(days=30), NOW + timedelta(days=30))


class Heard:
    """A site that hears verdicts, and keeps them in a store."""

    def __init__(self, folder: Path, keep: int = 1_000, now: datetime = NOW) -> None:
        self.now = now
        self.store = Store(folder / "console.db")
        self.site = SiteState.of_console(CONFIG, lambda: self.now)
        self.rounds = Rounds(self.store, self.site, keep)
        self.records = Records(self.store.db)

    def says(self, seq: int, kind: str, data: Any, *, at: datetime | None = None, journal: str = "j") -> bytes:
        raw = msgspec.json.encode(data)
        at = at or NOW + timedelta(seconds=seq)
        source = "felt/1/lisboa/table/rou-3/round"
        wire = Wire("1.0", f"{journal}:rou-3:{seq}/0", source, kind, at, seq, data=msgspec.Raw(raw), journal=journal)
        self.site._look(Message(f"{source}/event/{kind}", encode_wire(wire)))
        return raw

    def ended(self, seq: int, number: int | None = None, kind: str = "resolved", **more: Any) -> bytes:
        at, journal = more.pop("at", None), more.pop("journal", "j")
        result = {"round": f"rou-3:{number or seq}", "ruleset": "macau.roulette", "outcome": {"pocket": "2"}, **more}
        return self.says(seq, kind, {"result": result}, at=at, journal=journal)

    def listed(self, asked: Asked = EVER) -> list[str]:
        self.rounds.flush()
        return [one.round.partition(":")[2] for one in self.records.listed(asked, 1_000)]

    def close(self) -> None:
        self.store.close()


VOID = {"reason": {"code": "no_launch", "values": {}}, "bets": "returned"}


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    one = Heard(tmp_path)
    yield one
    one.close()


def test_rounds_are_found_by_date_newest_first_and_in_pages(heard: Heard) -> None:
    for seq in range(1, 8):
        heard.ended(seq, at=NOW + timedelta(hours=seq))
    assert heard.listed() == ["7", "6", "5", "4", "3", "2", "1"]
    some = Asked(ROU, NOW + timedelta(hours=2), NOW + timedelta(hours=5))
    assert heard.listed(some) == ["4", "3", "2"]  # the end of a period is not within it
    first = heard.records.listed(some, 2)
    rest = heard.records.listed(some, 2, first[-1].position)
    assert [one.round for one in (*first, *rest)] == ["rou-3:4", "rou-3:3", "rou-3:2"]
    assert [one.round for one in heard.records.in_order(some, 2)] == ["rou-3:2", "rou-3:3"]
    assert heard.listed(Asked("bac-12", EVER.since, EVER.until)) == []


def test_a_round_is_one_line_with_its_last_version_at_the_time_of_its_first(heard: Heard) -> None:
    heard.ended(1)
    heard.ended(2)
    heard.ended(3, 1, "corrected", supersedes="rou-3:1", outcome={"pocket": "17"})
    kept = heard.ended(4, 1, "corrected", supersedes="rou-3:1", void=VOID, outcome={})
    assert heard.listed() == ["2", "1"]
    one = heard.records.one(ROU, "rou-3:1")
    assert one is not None
    assert (one.position.at, one.at, one.kind, one.corrected) == (
        NOW + timedelta(seconds=1),
        NOW + timedelta(seconds=4),
        "corrected",
        True,
    )
    assert one.digest == sha256(kept).digest()
    assert [version.seq for version in heard.records.versions(ROU, "rou-3:1")] == [4, 3, 1]
    assert heard.records.one(ROU, "rou-3:9") is None


def test_rounds_are_filtered_by_what_became_of_them(heard: Heard) -> None:
    heard.ended(1)
    heard.ended(2, void=VOID)
    suspended = {"round": "rou-3:4", "reason": {"code": "events_missing", "values": {}}, "remedy": {"code": "x"}}
    heard.says(3, "suspended", suspended)
    heard.ended(4)
    heard.ended(5)
    heard.ended(6, 5, "corrected", supersedes="rou-3:5", void=VOID)
    answer = WagerAnswer("1", "t-1", "refused", "above_maximum", round="rou-3:7", law="Despacho 60/2004 art. 8")
    for _ in range(2):  # an answer that is repeated counts once
        heard.site._look(Message("felt/1/lisboa/table/rou-3/wager/t-1/result", msgspec.json.encode(answer)))
    heard.ended(7)
    shown = {show: heard.listed(msgspec.structs.replace(EVER, show=show)) for show in rounds.SHOWS}
    assert shown == {
        "all": ["7", "5", "4", "2", "1"],
        "resolved": ["7", "4", "1"],
        "void": ["5", "2"],
        "suspended": ["4"],
        "corrected": ["5"],
        "refused": ["7"],
    }
    assert heard.records.counts(EVER) == {show: len(some) for show, some in shown.items()}
    [waited] = heard.records.notes(ROU, "rou-3:4")
    assert waited.kind == "suspended"
    assert waited.reason is not None
    assert waited.reason.code == "events_missing"
    [refused] = heard.records.notes(ROU, "rou-3:7")
    assert (refused.kind, refused.law, refused.terminal) == ("refused", "Despacho 60/2004 art. 8", "t-1")
    one = heard.records.one(ROU, "rou-3:4")
    assert one is not None
    assert (one.suspended, one.refused) == (1, 0)


def test_previous_and_next_stay_within_the_filter(heard: Heard) -> None:
    for seq in range(1, 8):
        heard.ended(seq, void=VOID if seq in (2, 5) else None)
    heard.rounds.flush()
    one = heard.records.one(ROU, "rou-3:4")
    assert one is not None

    def beside(asked: Asked) -> list[str | None]:
        found = [heard.records.beside(asked, one.position, later=later) for later in (False, True)]
        return [None if other is None else other.round for other in found]

    assert beside(EVER) == ["rou-3:3", "rou-3:5"]
    assert beside(msgspec.structs.replace(EVER, show="void")) == ["rou-3:2", "rou-3:5"]
    assert beside(msgspec.structs.replace(EVER, show="refused")) == [None, None]


# ---- what is complete


def test_a_verdict_that_was_not_heard_is_a_gap(heard: Heard) -> None:
    for seq in (1, 2, 3):
        heard.ended(seq)
    heard.rounds._on_verdict(
        ROU, Wire("1.0", "j:rou-3:300/0", "s", "opened", NOW + timedelta(hours=1), 300, journal="j")
    )
    heard.rounds.flush()
    first, last, after = NOW + timedelta(seconds=1), NOW + timedelta(seconds=3), NOW + timedelta(hours=1)
    assert heard.records.since(ROU) == after
    assert heard.records.gaps(ROU, first, NOW + timedelta(days=1)) == [Interval(last, after)]
    assert heard.records.gaps(ROU, after, NOW + timedelta(days=1)) == []
    assert heard.records.gaps(ROU, NOW, after) == [Interval(NOW, first), Interval(last, after)]
    assert heard.records.gaps("bac-12", NOW, after) == [Interval(NOW, after)]
    assert heard.records.since("bac-12") is None


def test_a_restart_continues_behind_the_last_verdict_that_was_written(tmp_path: Path) -> None:
    first = Heard(tmp_path)
    for seq in (1, 2, 3):
        first.ended(seq)
    first.rounds.flush()
    first.ended(4)  # killed before it is written
    first.close()
    again = Heard(tmp_path)
    assert [one.round for one in again.site.tables[ROU].results] == ["rou-3:1", "rou-3:2", "rou-3:3"]
    assert again.site._rounds["j", ROU].expected == 4
    told: list[str] = []
    again.site.on_result.append(lambda _table, _kind, result: told.append(result.round))
    again.ended(6)
    assert again.site._rounds["j", ROU].gap == (4, 5)  # requested from the journal of the rules
    again.ended(5)
    again.ended(4)
    assert again.listed() == ["6", "5", "4", "3", "2", "1"]
    assert told == ["rou-3:4", "rou-3:5", "rou-3:6"]
    assert again.records.gaps(ROU, NOW + timedelta(seconds=1), NOW + timedelta(days=1)) == []
    again.close()


def test_a_console_that_was_away_for_long_requests_the_last_verdicts_only(tmp_path: Path) -> None:
    first = Heard(tmp_path)
    first.ended(1)
    first.rounds.flush()
    first.close()
    later = NOW + rounds.MOST_AWAY + timedelta(minutes=1)
    again = Heard(tmp_path, now=later)
    assert not again.site._rounds
    again.ended(5_000, at=later)
    assert again.site._rounds["j", ROU].gap == (5_000 - ROUNDS, 4_999)
    for seq in range(5_000 - ROUNDS, 5_000):
        again.says(seq, "opened", {"round": "x"}, at=later)
    assert again.listed() == ["5000", "1"]
    assert again.records.gaps(ROU, NOW + timedelta(seconds=1), later) == [Interval(NOW + timedelta(seconds=1), later)]
    again.close()


def test_verdicts_that_come_again_are_kept_once(tmp_path: Path) -> None:
    first = Heard(tmp_path)
    first.ended(1)
    first.rounds.flush()
    first.close()
    again = Heard(tmp_path)
    again.rounds._stretches.clear()
    again.site._rounds.clear()
    again.ended(1)
    assert again.listed() == ["1"]
    again.close()


# ---- bounds


def test_the_oldest_rounds_leave_with_their_notes(tmp_path: Path) -> None:
    heard = Heard(tmp_path, keep=100)
    heard.says(1, "suspended", {"round": "rou-3:2", "reason": {"code": "x", "values": {}}, "remedy": {"code": "x"}})
    for seq in range(2, 302):
        heard.ended(seq)
        if seq % 10 == 0:
            heard.rounds.flush()
    kept = heard.listed()
    assert 100 <= len(kept) <= 100 + rounds.PRUNE_AFTER
    assert kept[0] == "301"
    assert heard.records.notes(ROU, "rou-3:2") == []
    assert heard.records.since(ROU) is not None
    oldest = heard.store.db.execute("SELECT min(at) FROM round_end").fetchone()[0]
    assert heard.store.db.execute("SELECT since FROM round_stretch").fetchall() == [(oldest,)]
    heard.close()


def test_rounds_wait_for_a_store_that_cannot_be_written_and_a_lost_one_is_a_gap(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "MOST_WAITING", 6)  # two rows each round
    heard.store.db.execute("PRAGMA query_only=ON")
    with structlog.testing.capture_logs() as logs:
        for seq in range(1, 8):
            heard.ended(seq)
            heard.rounds.flush()
    assert [(one["event"], one["log_level"]) for one in logs] == [("rounds.unwritten", "error")]
    assert len(heard.rounds._waiting) == 6
    heard.store.db.execute("PRAGMA query_only=OFF")
    assert heard.listed() == ["7", "6", "5"]
    gaps = heard.records.gaps(ROU, NOW, NOW + timedelta(seconds=8))
    assert gaps
    assert gaps[0].since == NOW
    assert gaps[0].until >= NOW + timedelta(seconds=4)


def test_the_notes_of_a_round_are_bounded(heard: Heard) -> None:
    for number in range(200):
        answer = WagerAnswer(str(number), "t-1", "refused", "late", round="rou-3:1")
        heard.site._look(Message("felt/1/lisboa/table/rou-3/wager/t-1/result", msgspec.json.encode(answer)))
    heard.rounds.flush()
    assert len(heard.records.notes(ROU, "rou-3:1")) == rounds.MOST_NOTES


@given(st.sampled_from(("suspended", "resolved", "voided", "corrected", "opened")), st.binary(max_size=60))
def test_no_verdict_stops_the_console(tmp_path_factory: pytest.TempPathFactory, kind: str, data: bytes) -> None:
    heard = Heard(tmp_path_factory.mktemp("records"))
    heard.rounds._on_verdict(ROU, Wire("1.0", "j:1/0", "s", kind, NOW, 1, data=msgspec.Raw(data), journal="j"))
    heard.rounds.flush()
    heard.close()
