"""Decisions of supervisors on the page of a table: a void round, corrected cards, or two statements of the bets on a
table of craps after a loss.

The console sends them as the dealer's page does: it is a device of the table (docs/decisions/0035), and a decision is
a press of its keys with the supervisor's key turned. So rounds of a table without a dealer's page are not decided.
"""

import asyncio
import contextlib
import hashlib
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias, get_args

from markupsafe import Markup
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon.console.auth.access import User, may
from daemon.console.context import ConsoleContext
from daemon.console.dealer.unit import By, Full, Other, Press, Pressed, Unit
from daemon.console.live import Fragment
from daemon.console.pages import series
from daemon.console.pages.dealer import ID, BadPress, Dealers, happenings_of, refused
from daemon.console.site.store import BadStore
from daemon.views import TableView
from daemon.words import words
from protocols.contract.facts import CardFacts, RoundFacts, Stated, of_kind
from protocols.contract.results import Result
from protocols.fdl.console import SUPERVISORS_DECISION, VOID_REASONS
from rules.facts import facts_of_result

__all__ = ["Decisions"]

Decision: TypeAlias = Literal["void", "correct", "series"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
ENDED = 2
"""Maximum number of ended rounds that are offered beside the open one."""
SHOWN = 3
LONGEST_WHY = 200
_SCHEMA = """
CREATE TABLE IF NOT EXISTS decided (
    n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, id TEXT NOT NULL, key TEXT NOT NULL, round TEXT NOT NULL,
    by TEXT NOT NULL, why TEXT NOT NULL, before INTEGER NOT NULL, noted TEXT NOT NULL
) STRICT;
"""
# The notes of the rules about refused decisions.
UNTAKEN = frozenset({"void_without_round", "correction_without_round", "round_unknown", "round_not_reopened"})


class Choice(Struct, frozen=True):
    """A round that can be decided. `hands` are written as a correction writes them; `ids` are those of its forms.

    `series`: it waits for two supervisors to state point and bets; `stated`: the last statement so far.
    """

    round: str
    suspended: bool
    void: bool
    text: str
    hands: str
    ids: Mapping[Decision, str]
    series: bool = False
    stated: Stated | None = None

    def keys(self, of_game: Sequence[Decision]) -> list[Decision]:
        """The possible decisions: a void round is not declared void again, a known series is not stated."""
        return [key for key in of_game if not (self.void if key == "void" else key == "series" and not self.series)]


class Decided(Struct, frozen=True):
    """A decision that was made here. `before`: the number of results of the round; `noted`: the last note then."""

    id: str
    key: Decision
    round: str
    by: str
    why: str
    before: int
    noted: datetime | None


class Outcome(Struct, frozen=True):
    """A decision and its outcome; `text`: the new result, why it waits or was refused, or who stated something else."""

    one: Decided
    pressed: Pressed
    state: Literal["here", "edge", "lost", "waits", "taken", "refused", "second", "differs"]
    text: str = ""


class Decisions:
    """The decisions at all tables: the forms, their answers, and the outcomes."""

    def __init__(self, context: ConsoleContext, dealers: Dealers) -> None:
        """With the decisions from before the last restart. Raises BadStore."""
        self._context = context
        self._dealers = dealers
        self._made: dict[str, deque[Decided]] = {}
        context.store.has(_SCHEMA)
        query = "SELECT place, id, key, round, by, why, before, noted FROM decided ORDER BY n"
        for table, id_, key, round_, by, why, before, noted in context.store.db.execute(query):
            at = datetime.fromisoformat(noted) if noted else None
            self._made_at(table).append(Decided(id_, key, round_, by, why, before, at))
        for table, unit in dealers.units.items():
            unit.on_change = self._notifying(table, unit.on_change)

    def _notifying(self, table: str, notify_dealers: Callable[[], None]) -> Callable[[], None]:
        def changed() -> None:
            notify_dealers()
            self._context.site.notify(f"decide/{table}")

        return changed

    def fragments(self) -> tuple[Fragment, ...]:
        """`decide`: the forms, for a supervisor; and the last decisions."""

        def keys(table: str) -> tuple[str, ...]:
            return tuple(f"{key}/{table}" for key in ("table", "results", "noted", "decide"))

        return (
            Fragment("decide", keys, lambda table, viewer: self._drawn(table, viewer.lang, viewer.role), _same, _none),
        )

    def routes(self) -> list[Route]:
        """The answer to the forms."""
        return [Route("/table/{table}/decide/{key}", self.decide, methods=["POST"])]

    def _drawn(self, table: str, lang: words.Lang, role: str, typed: Mapping[str, str] | None = None) -> str:
        """The forms of a table. `typed`: a refused input."""
        view = self._context.site.tables[table]
        unit = self._dealers.units.get(table)
        decides, keys = may(role, "decide"), self._keys(table)
        choices = _choices(view, unit, lang) if decides and unit is not None else []
        choices = [one for one in choices if one.keys(keys)]
        return self._context.render(
            "_decide.html",
            lang,
            table=table,
            decides=decides,
            here=unit is not None,
            waits=self._context.site.rules() is True and view.phase == "suspended",
            keys=keys,
            choices=choices,
            drawn={(one.round, key) for one in choices for key in one.keys(keys)},
            reasons=[
                (number, words.say(lang, f"reason.{code}" if code else "dealer.void_0"))
                for number, code in sorted(VOID_REASONS.items(), key=lambda one: one[0] != SUPERVISORS_DECISION)
            ],
            outcomes=self._outcomes(view, unit, lang) if unit is not None else [],
            typed=dict.fromkeys(("round", "key", "wrong", "reason", "hands", "why", "point", "bets"), "")
            | dict(typed or {}),
            longest_why=LONGEST_WHY,
            points=series.POINTS,
            lines_of=series.lines_of,
            line_of=series.line_of,
            places=self._dealers.places(table, lang) if any(one.series for one in choices) else [],
        )

    def _keys(self, table: str) -> list[Decision]:
        """The decisions of the table's game."""
        known = {key.name for key in self._dealers.keys(table)}
        return [key for key in DECISIONS if key in known or key == "series"]

    async def decide(self, request: Request) -> Response:
        """Press the supervisor's key. The answer follows when it is durable here; the page shows the outcome later."""
        context, table = self._context, request.path_params["table"]
        user = context.needs(request, "decide", table)
        unit = self._dealers.units.get(table)
        key = next((one for one in DECISIONS if one == request.path_params["key"]), None)
        if unit is None or key not in self._keys(table):
            raise HTTPException(404)
        given = await context.form(request)
        lang, round_ = context.lang(request), given.get("round", "")
        made = self._made_at(table)
        try:
            press = self._press(unit, key, given, user)
            why = _why(given) if key != "series" else press.values["stated"]
            view = context.site.tables[table]
            before = sum(one.round == round_ for one in view.results)
            noted = view.noted[-1][0] if view.noted else None
            unit.press(press, By(user.name, user.role), asyncio.get_running_loop().time())
        except (BadPress, Full, Other, BadStore, sqlite3.Error) as error:
            bad, status = refused(error)
            typed = {
                **given,
                "key": key,
                "wrong": self._refusal(table, key, round_, error, lang) or words.say(lang, bad),
            }
            page = Markup(self._drawn(table, lang, user.role, typed))  # noqa: S704 - rendered by us
            ruleset = context.site.ruleset(table)
            return context.page(request, "table.html", status, table=table, ruleset=ruleset, decide=page, hours="")
        if all(one.id != press.id for one in made):
            made.append(Decided(press.id, key, round_, user.name, why, before, noted))
            self._keep(table, made[-1])
        context.actions.collect()
        context.site.notify(f"decide/{table}")
        return RedirectResponse(f"/table/{table}#decide", 303)

    def _made_at(self, table: str) -> deque[Decided]:
        return self._made.setdefault(table, deque(maxlen=SHOWN))

    def _keep(self, table: str, one: Decided) -> None:
        """Store a decision, to show it after a restart. If that fails, only the page lacks it: the press is durable."""
        noted = one.noted.isoformat() if one.noted else ""
        fewer = (
            "DELETE FROM decided WHERE place = ?1 AND n NOT IN (SELECT n FROM decided WHERE place = ?1 ORDER BY n DESC"
        )
        with contextlib.suppress(BadStore), self._context.store.write() as db:
            values = (table, one.id, one.key, one.round, one.by, one.why, one.before, noted)
            db.execute(
                "INSERT INTO decided (place, id, key, round, by, why, before, noted) VALUES (?,?,?,?,?,?,?,?)", values
            )
            db.execute(f"{fewer} LIMIT ?2)", (table, SHOWN))

    def _refusal(self, table: str, key: Decision, round_: str, error: Exception, lang: words.Lang) -> str:
        """The person who made the same decision first; "" where the refusal has another reason."""
        is_late = isinstance(error, Other) or (isinstance(error, BadPress) and error.key == "decide.already_void")
        same = [one for one in self._made.get(table, ()) if one.round == round_ and one.key == key]
        if not is_late or not same or key == "series":
            return ""
        return words.say(lang, "decide.already_decided", by=same[0].by, why=same[0].why)

    def _press(self, unit: Unit, key: Decision, given: Mapping[str, str], user: User) -> Press:
        """The press of a form. Raises BadPress; Other if another person made the same decision first."""
        view = self._context.site.tables[unit.table]
        round_, why, id_ = given.get("round", ""), _why(given), given.get("id", "")
        choice = next((one for one in _choices(view, unit, "en") if one.round == round_), None)
        if choice is None:
            raise BadPress("decide.no_round")
        if key not in choice.keys(DECISIONS):
            raise BadPress("decide.already_void")
        if not ID.fullmatch(id_):
            raise BadPress("dealer.bad_id")
        if key == "series":
            return self._statement(unit.table, view, id_, given, user)
        if not why:
            raise BadPress("decide.no_why")
        if any(one.id == id_ and (one.by, one.why) != (user.name, why) for one in self._made.get(unit.table, ())):
            raise Other
        happenings = happenings_of(key, given, supervisor=True)
        reason = {"reason": given.get("reason", "")} if key == "void" else {}
        return Press(id_, key, happenings, {**reason, "round": round_, "why": why}, round_)

    def _statement(self, table: str, view: TableView, id_: str, given: Mapping[str, str], user: User) -> Press:
        """The press of the signed-in user's statement. Each user has their own press, even from equal forms."""
        if kept := self._context.access.may_decide(user):
            raise BadPress(kept)
        stated = series.typed(given, user.name)
        own = hashlib.sha256(f"{id_} {user.name}".encode()).hexdigest()[:32]
        happenings = series.pressed(stated, view, self._dealers.configured(table))
        return Press(own, "series", happenings, {"stated": series.line_of(stated), "round": view.round}, view.round)

    def _outcomes(self, view: TableView, unit: Unit, lang: words.Lang) -> list[Outcome]:
        """The last decisions, the newest first."""
        found = [(one, unit.find(one.id)) for one in reversed(self._made.get(unit.table, ()))]
        return [_outcome(view, one, pressed, lang) for one, pressed in found if pressed is not None]


def _why(given: Mapping[str, str]) -> str:
    return given.get("why", "").strip()[:LONGEST_WHY]


def _same(table: str) -> str:
    return table


def _none(_table: str) -> tuple[str, ...]:
    return ()


def _outcome(view: TableView, one: Decided, pressed: Pressed, lang: words.Lang) -> Outcome:
    results = [result for result in view.results if result.round == one.round]
    if len(results) > one.before and one.key == "series" and results[-1].void is not None:
        return Outcome(one, pressed, "refused", _said(results[-1], lang))
    if len(results) > one.before and (results[-1].void is not None or one.key == "correct"):
        return Outcome(one, pressed, "taken", _said(results[-1], lang))
    if one.key == "series" and pressed.state == "edge":
        state, text = series.state_of(view, one.round, one.why, one.by)
        return Outcome(one, pressed, state, text)
    # By the times of the table's computer, whose clock may differ.
    noted = [note for at, note in view.noted if (one.noted is None or at > one.noted) and note.code in UNTAKEN]
    if noted:
        return Outcome(one, pressed, "refused", words.noted(lang, noted[-1]))
    match pressed.state:
        case "edge" if view.round == one.round and view.phase == "suspended":
            return Outcome(one, pressed, "waits", words.reason(lang, view.facts.reason))
        case "edge" | "lost":
            return Outcome(one, pressed, pressed.state)
        case _:
            return Outcome(one, pressed, "here")


def _said(result: Result, lang: words.Lang) -> str:
    if result.void is not None:
        return words.reason(lang, result.void.reason)
    return words.announced(lang, result.announcements)


def _choices(view: TableView, unit: Unit, lang: words.Lang) -> list[Choice]:
    """The open round and the last ended ones, each once."""
    last = next((one.id for one in unit.last(1)), "")

    def choice(round_: str, text: str, facts: RoundFacts, *, suspended: bool = False, void: bool = False) -> Choice:
        """A choice. Pages with the same state have the same ids, so that two simultaneous presses make one decision."""
        named = ((key, f"{unit.table} {round_} {key} {last}") for key in DECISIONS)
        ids = {key: hashlib.sha256(name.encode()).hexdigest()[:32] for key, name in named}
        lying = of_kind(CardFacts, facts).hands
        hands = "\n".join(f"{name} {' '.join(cards)}" for name, cards in lying.items() if cards)
        first = series.first_of(view) if suspended else None
        return Choice(round_, suspended, void, text, hands, ids, suspended and series.waits(view), first)

    found: dict[str, Choice] = {}
    if view.round and view.phase not in ("-", "idle"):
        facts, suspended = view.facts, view.phase == "suspended"
        text = words.reason(lang, facts.reason) if suspended else words.say(lang, f"phase.{view.phase}")
        found[view.round] = choice(view.round, text, facts, suspended=suspended)
    for one in reversed(view.results):
        if len(found) > ENDED:
            break
        if one.round not in found:
            void = one.void is not None
            head = words.say(lang, "round.void") + words.say(lang, "site.colon") if void else ""
            found[one.round] = choice(one.round, head + _said(one, lang), facts_of_result(one), void=void)
    return list(found.values())
