"""Reports of a round, and of a table in a period, to be kept outside of feltd: as JSON, as CSV and on paper.

The digest of a report is the SHA-256 of the digests of its verdicts, each 64 hexadecimal digits and a line feed, in the
order of the report. The digest of a verdict is the SHA-256 of its data in the journal of the rules, which
`feltd journal recall` prints, too: so paper can be compared with the journal.
"""

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from daemon.console import paper
from daemon.console.paper import Block, Facts, Heading, Lines, Paper, Rows, Text
from daemon.console.site.actions import Action
from daemon.console.site.rounds import SHOWS, Ended, Interval, Note, Show
from daemon.journal.recall import Recalled
from daemon.words import words
from daemon.words.local import Local
from protocols.contract.payouts import payout_order
from protocols.contract.results import Result

__all__ = [
    "COLUMNS",
    "Alarm",
    "Line",
    "Made",
    "Period",
    "Round",
    "Version",
    "cells",
    "digest_of",
    "line_of",
    "missing_rows",
]

COLUMNS = (
    *("ended", "round", "result", "outcome", "reason", "articles", "corrected", "suspended", "refused_bets"),
    *("irregularities", "journal", "seq", "digest"),
)
SHORT = 16
"""Digits of a digest in a table on paper."""


class Made(Struct, frozen=True):
    """Place, author and time of a report."""

    site: str
    table: str
    game: str
    by: str
    role: str
    at: datetime


class Line(Struct, frozen=True):
    """A round in one line. `result` is "resolved" or "void"; `corrected`: when the last version came."""

    ended: datetime
    round: str
    result: str
    outcome: str
    reason: str
    articles: tuple[str, ...]
    corrected: datetime | None
    suspended: int
    refused_bets: int
    irregularities: tuple[str, ...]
    journal: str
    seq: int
    digest: str


class Alarm(Struct, frozen=True):
    """An alert of the table."""

    began: datetime
    ended: datetime | None
    device: str
    severity: str
    code: str
    text: str
    by: str


class Version(Struct, frozen=True):
    """One end of a round, with the result as the rules wrote it."""

    time: datetime
    kind: str
    journal: str
    seq: int
    digest: str
    result: Result


class Round(Struct, frozen=True, kw_only=True):
    """The report of one round. The versions are sorted with the newest first."""

    feltd: str = "round"
    version: int = 1
    made: Made
    digest: str
    versions: tuple[Version, ...]
    notes: tuple[Note, ...]
    acts: tuple[Action, ...]
    acts_cut: bool = False


class Period(Struct, frozen=True, kw_only=True):
    """The report of a table. `cut`: there are more rounds than a report holds; the same of acts and alerts.

    `received_until`: the time of the last verdict of the table that the console received.
    """

    feltd: str = "rounds"
    version: int = 1
    made: Made
    since: datetime
    until: datetime
    show: str
    complete_since: datetime | None
    received_until: datetime | None
    gaps: tuple[Interval, ...]
    counts: dict[Show, int]
    cut: bool
    digest: str
    rounds: tuple[Line, ...]
    acts: tuple[Action, ...]
    alerts: tuple[Alarm, ...]
    acts_cut: bool = False
    alerts_cut: bool = False

    @property
    def of_all(self) -> bool:
        """Whether every round of the period that the console received is in it."""
        return self.show == "all" and not self.cut


def digest_of(digests: Iterable[str]) -> str:
    """The digest of a report."""
    whole = sha256()
    for one in digests:
        whole.update(one.encode() + b"\n")
    return whole.hexdigest()


def line_of(one: Ended, lang: words.Lang) -> Line:
    """A round in one line, in a language."""
    result = one.result
    return Line(
        one.position.at,
        one.round,
        "resolved" if result.void is None else "void",
        words.announced(lang, result.announcements),
        words.reason(lang, result.void.reason) if result.void is not None else "",
        result.law,
        one.at if one.corrected else None,
        one.suspended,
        one.refused,
        tuple(words.noted(lang, note) for note in result.irregularities),
        one.journal,
        one.seq,
        one.digest.hex(),
    )


def cells(line: Line) -> tuple[str, ...]:
    """A line of the CSV, by COLUMNS."""
    return (
        line.ended.isoformat(),
        line.round,
        line.result,
        line.outcome,
        line.reason,
        "; ".join(line.articles),
        line.corrected.isoformat() if line.corrected else "",
        str(line.suspended),
        str(line.refused_bets),
        "; ".join(line.irregularities),
        line.journal,
        str(line.seq),
        line.digest,
    )


def missing_rows(report: Period, lang: words.Lang) -> list[tuple[str, ...]]:
    """The rows at the end of a CSV for rounds that are not in it: `result` is "gap" or "cut"."""

    def row(at: datetime, result: str, text: str) -> tuple[str, ...]:
        return (at.isoformat(), "", result, text, *[""] * (len(COLUMNS) - 4))

    gap = words.say(lang, "rounds.gap")
    rows = [row(one.since, "gap", f"{gap} ({one.since.isoformat()} – {one.until.isoformat()})") for one in report.gaps]
    if report.cut:
        rows.append(row(report.rounds[-1].ended, "cut", words.say(lang, "paper.cut", n=len(report.rounds))))
    return rows


# ---- on paper


class Printer:
    """Composes reports in the words and times of one language."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._lang: words.Lang = local.lang
        self._colon = self._t("site.colon")

    def _t(self, key: str, **values: Any) -> str:
        return words.say(self._lang, key, **values)

    def _when(self, at: datetime | None) -> str:
        return f"{self._local.day(at)} {self._local.clock(at)}" if at is not None else "–"

    def _role(self, role: str) -> str:
        return self._t(f"role.{role}") if role else "–"

    def _paper(self, title: str, made: Made, digest: str, blocks: list[Block]) -> Paper:
        foot = f"{made.site} · {made.table} · {made.by} · {self._when(made.at)} · SHA-256 {digest}"
        return Paper(title, self._lang, foot, self._t("paper.page", page="{page}", pages="{pages}"), tuple(blocks))

    def _head(self, made: Made, digest: str, *more: tuple[str, str]) -> Facts:
        return Facts(
            (
                (self._t("paper.site"), made.site),
                (self._t("rounds.table"), f"{made.table} · {made.game}"),
                *more,
                (self._t("paper.made"), f"{made.by} ({self._role(made.role)}), {self._local.exact(made.at)}"),
                (self._t("paper.zone"), self._local.zone_name),
                (self._t("paper.digest"), digest),
            )
        )

    def round(self, report: Round) -> Paper:
        """A round: its results with their articles, earlier events, the people, the evidence."""
        name = report.versions[0].result.round
        blocks: list[Block] = [self._head(report.made, report.digest, (self._t("table.round"), name))]
        for one in report.versions:
            blocks += self._version(one)
        if report.notes:
            rows = [
                (
                    self._when(note.at),
                    self._t(f"rounds.note_{note.kind}"),
                    words.sentence(words.reason(self._lang, note.reason)),
                    note.law,
                )
                for note in report.notes
            ]
            head = tuple(map(self._t, ("rounds.time", "rounds.show", "paper.reason", "round.law")))
            blocks += [Heading(self._t("rounds.before")), Rows(head, rows, (18, 14, 44, 24))]
        blocks += self._acts(report.acts, cut=report.acts_cut)
        evidence = report.versions[0].result.evidence
        blocks += [Heading(self._t("round.evidence")), Text(self._t("round.evidence_text")), Lines(evidence)]
        recall = f"feltd journal recall {report.made.table} --round {shlex.quote(name)}"
        blocks += [Heading(self._t("paper.compare")), Text(self._t("paper.compare_round")), Lines((recall,))]
        return self._paper(self._t("paper.round", round=name), report.made, report.digest, blocks)

    def recalled(self, made: Made, found: Sequence[Recalled]) -> Paper:
        """Rounds as the journals have them, down to the bytes on the wire."""
        digest = digest_of(one.digest for one in found)
        blocks: list[Block] = [self._head(made, digest)]
        for one in found:
            result = msgspec.json.decode(one.result, type=Result)
            blocks.append(Heading(self._t("paper.round", round=result.round)))
            blocks += self._version(Version(one.time, one.type, "", one.seq, one.digest, result))
            blocks.append(Heading(self._t("paper.events")))
            for event in one.evidence:
                said = f"{event.device} {event.type} {bytes(event.data).decode()}" if event.time else event.note
                blocks.append(Text(f"{self._local.clock(event.time, ms=True) if event.time else '–'} {said}"))
                wire = bytes.fromhex(event.wire)
                rows = [wire[at : at + 16].hex(" ") for at in range(0, len(wire), 16)]
                blocks.append(Lines((event.id, *rows, *([event.note] if event.time and event.note else []))))
        return self._paper(self._t("paper.rounds", table=made.table), made, digest, blocks)

    def _version(self, one: Version) -> list[Block]:
        result = one.result
        kind = "round.corrected" if one.kind == "corrected" else "round.void" if result.void else "round.result"
        void = result.void
        facts = [
            (self._t("rounds.ended"), self._when(one.time)),
            (
                self._t("table.outcome"),
                words.sentence(words.reason(self._lang, void.reason)) + " · " + self._t(f"void.{void.bets}")
                if void
                else words.announced(self._lang, result.announcements),
            ),
            (self._t("paper.facts"), msgspec.json.encode(result.outcome).decode()),
            (self._t("round.law"), "; ".join(result.law) or "–"),
            (self._t("paper.ruleset"), f"{result.ruleset} {result.edition}".rstrip()),
            (self._t("rounds.digest"), f"{one.digest} ({' / '.join(filter(None, (one.journal, str(one.seq))))})"),
        ]
        pushes = [one if isinstance(one, str) else f"{one.bet} ({_seat(one.seat, one.hand)})" for one in result.pushes]
        moves = [f"{bet} → {place}" for bet, place in result.moves.items()]
        named = words.catalog(self._lang)
        awards = [
            f"{one.jackpot}{self._colon}{named.get(f'combination.{one.combination}', one.combination)}"
            f" ({', '.join(map(str, one.among)) or '–'}; {one.law})"
            for one in result.jackpots
        ]
        options = msgspec.json.format(bytes(result.options), indent=-1).decode()
        more = {"paper.options": [options] if options != "{}" else []}
        more |= {"paper.pushes": pushes, "paper.stands": list(result.stands), "round.moves": moves}
        facts += [(self._t(key), ", ".join(said)) for key, said in more.items() if said]
        facts += [(self._t("round.jackpots"), one) for one in awards]
        if result.demo:
            facts.append((self._t("paper.demo"), self._t("paper.demo_text")))
        facts += [
            (self._t("round.irregular"), f"{words.sentence(words.noted(self._lang, note))} ({note.law})")
            for note in result.irregularities
        ]
        blocks: list[Block] = [Heading(f"{self._t(kind)} · {self._when(one.time)}"), Facts(tuple(facts))]
        if result.winners:
            rows = [(f"{win.seat} · {win.bet}" if win.seat else win.bet, win.pays) for win in result.winners]
            head = (self._t("round.bet"), self._t("round.pays"))
            blocks += [Text(self._t("round.winners", n=len(rows))), Rows(head, rows, (70, 30))]
        if result.settlements:
            payout = payout_order(result)
            paid = [
                (_seat(one.seat, one.hand), one.bet, str(one.stake), str(one.returned)) for one in payout.settlements
            ]
            head4 = (self._t("paper.seat"), *map(self._t, ("round.bet", "round.stake", "round.returned")))
            blocks += [Text(self._t("round.payments", n=len(paid))), Rows(head4, paid, (10, 50, 20, 20))]
            blocks += [Text("; ".join(payout.law))] if payout.law else []
        return blocks

    def _acts(self, acts: Sequence[Action], *, cut: bool) -> list[Block]:
        if not acts:
            return []
        shortened = [Text(self._t("paper.cut_acts", n=len(acts)), strong=True)] if cut else []
        rows = [
            (
                self._when(act.time),
                f"{act.user or '–'} ({self._role(act.role)})",
                f"{act.action} {act.target}",
                msgspec.json.encode(act.detail).decode() if act.detail else "",
            )
            for act in acts
        ]
        head = tuple(map(self._t, ("rounds.time", "access.user", "access.action", "access.detail")))
        return [Heading(self._t("rounds.people")), *shortened, Rows(head, rows, (18, 20, 24, 38))]

    def period(self, report: Period) -> Paper:
        """A table in a period: counts, voids, corrections, alerts, people, and every round in a line."""
        made = report.made
        period = f"{self._when(report.since)} – {self._when(report.until)}"
        more = [(self._t("paper.period"), period), (self._t("rounds.show"), self._t(f"rounds.show_{report.show}"))]
        if report.complete_since is not None:
            more.append((self._t("rounds.complete"), self._when(report.complete_since)))
        if report.received_until is not None:
            more.append((self._t("paper.heard"), self._when(report.received_until)))
        blocks: list[Block] = [self._head(made, report.digest, *more)]
        blocks += [
            Text(f"{self._t('rounds.gap')}{self._colon}{self._when(gap.since)} – {self._when(gap.until)}", strong=True)
            for gap in report.gaps
        ]
        if made.at < report.until:
            blocks.append(Text(self._t("paper.not_over"), strong=True))
        if report.cut:
            blocks.append(Text(self._t("paper.cut", n=len(report.rounds)), strong=True))
        counted = tuple((self._t(f"rounds.show_{show}"), str(report.counts[show])) for show in SHOWS)
        blocks += [Heading(self._t("paper.counts")), Facts(counted)]
        blocks += self._part("rounds.show_void", report, lambda one: one.result == "void")
        blocks += self._part("rounds.show_corrected", report, lambda one: one.corrected is not None)
        blocks += self._alerts(report.alerts, cut=report.alerts_cut)
        blocks += self._acts(report.acts, cut=report.acts_cut)
        rows = [
            (
                self._when(one.ended),
                one.round.partition(":")[2] or one.round,
                self._said(one),
                self._marks(one),
                one.digest[:SHORT],
            )
            for one in report.rounds
        ]
        head = (*map(self._t, ("rounds.time", "table.round", "table.outcome", "paper.marks")), "SHA-256")
        blocks += [Heading(self._t("paper.every")), Rows(head, rows, (19, 16, 36, 14, 15), (4,))]
        blocks += [
            Heading(self._t("paper.compare")),
            Text(self._t("paper.compare_period")),
            Lines((f"feltd journal recall {made.table} --round '…'",)),
        ]
        return self._paper(self._t("paper.rounds", table=made.table), made, report.digest, blocks)

    def _part(self, key: str, report: Period, belongs: Any) -> list[Block]:
        some = [one for one in report.rounds if belongs(one)]
        if not some and not report.of_all:  # the rounds of such a kind may be among those left out
            return []
        rows = [
            (
                self._when(one.corrected or one.ended),
                one.round.partition(":")[2] or one.round,
                self._said(one),
                "; ".join(one.articles),
                "; ".join(self._who(one, report.acts)) or "–",
            )
            for one in some
        ]
        keys = ("rounds.time", "table.round", "table.outcome", "round.law", "paper.who")
        return [
            Heading(f"{self._t(key)}{self._colon}{len(some)}"),
            Rows(tuple(map(self._t, keys)), rows, (17, 12, 27, 27, 17)),
        ]

    def _who(self, line: Line, acts: Sequence[Action]) -> list[str]:
        """The people whose actions name the round, each once."""
        named = [act for act in acts if act.detail.get("round") == line.round]
        did = [act.detail.get("key") or act.detail.get("command") or act.action for act in named]
        said = (f"{act.user} ({self._role(act.role)}){self._colon}{what}" for act, what in zip(named, did, strict=True))
        return list(dict.fromkeys(said))

    def _alerts(self, alerts: Sequence[Alarm], *, cut: bool) -> list[Block]:
        rows = [
            (self._when(one.began), self._when(one.ended), one.device or "–", one.text, one.by or "–") for one in alerts
        ]
        keys = ("alerts.began", "alerts.ended", "alerts.device", "alerts.text", "report.owner")
        shortened = [Text(self._t("paper.cut_alerts", n=len(alerts)), strong=True)] if cut else []
        heading = f"{self._t('report.incidents')}{self._colon}{len(alerts)}"
        return [Heading(heading), *shortened, Rows(tuple(map(self._t, keys)), rows, (18, 18, 14, 36, 14))]

    def _said(self, one: Line) -> str:
        return f"{self._t('round.void')}{self._colon}{one.reason}" if one.result == "void" else one.outcome

    def _marks(self, one: Line) -> str:
        marks = [
            *([self._t("round.corrected")] if one.corrected else []),
            *([self._t("rounds.was_suspended")] if one.suspended else []),
            *([self._t("rounds.refused_bets", n=one.refused_bets)] if one.refused_bets else []),
            *([self._t("rounds.irregular", n=len(one.irregularities))] if one.irregularities else []),
        ]
        return ", ".join(marks)


def _seat(seat: int, hand: int) -> str:
    return f"{seat} · {hand}" if hand else str(seat)


def printable() -> bool:
    """Whether PDF reports can be made here."""
    return paper.installed()
