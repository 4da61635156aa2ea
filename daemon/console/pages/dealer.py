"""The dealer's page: a second way beside the hardware console, which needs nothing but the edge.

One request for each key, with an id that the page drew: a double tap or a repeated request is one key. What is kept and
what the edge has made durable are told apart (daemon/console/dealer/unit.py). A correction, a jackpot's payment and a
void by the supervisor's decision are a supervisor's: where a console has a key to turn, this page asks who came in.
"""

import asyncio
import contextlib
import re
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.console import shapes
from daemon.console.auth.access import User, home
from daemon.console.context import ConsoleContext
from daemon.console.dealer.unit import By, Full, Other, Press, Pressed, Unit, serve
from daemon.console.site.store import BadStore
from daemon.console.words import words
from daemon.read_model import utc
from protocols.contract.reasons import Reason
from protocols.contract.results import Irregularity, RoundFacts, facts_of
from protocols.contract.wagers import WagerAnswer
from protocols.fdl import frame as fdl
from protocols.fdl.console import (
    ACTIONS,
    ANTICLOCKWISE,
    CARDS,
    CLOCKWISE,
    MAX_BET,
    MAX_ROUND,
    SUPERVISORS_DECISION,
    THROW_REASONS,
    VOID_REASONS,
    BallChanged,
    BallEntered,
    BallLaunched,
    BallReplaced,
    BetPlaced,
    BetsClosed,
    BetsOpened,
    BetWithdrawn,
    ButtonsCounted,
    ButtonsSeparated,
    CardDamaged,
    CardExposed,
    Corrected,
    CutCard,
    DealerRelieved,
    DemoRound,
    DiceDisturbed,
    DiceEntered,
    DiceReplaced,
    DiceSeized,
    DiceThrown,
    HandPassed,
    JackpotPaid,
    JackpotWon,
    NewShoe,
    Paid,
    RoundVoid,
    SeatAction,
    SeatClosed,
    SeatOpened,
    SupervisorKey,
    TableClosed,
)

__all__ = ["GAMES", "ID", "KEYS", "WRONG", "BadPress", "Dealers", "happenings_of", "refused"]

SHOWN = 12
HEARTBEAT = 2.0
PAUSE = 0.05
MOST_VIEWERS = 20
SEATS = 9
ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_ROUND = re.compile(rf"[a-z0-9:-]{{0,{MAX_ROUND}}}")
_BET = re.compile(rf"[a-z0-9_:-]{{1,{MAX_BET}}}")
_POCKETS = ("", *map(str, range(37)), "00", "000", "0000")


class BadPress(Exception):
    """What was typed is no value of this key. `key` is its words in the catalogs."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class Key(Struct, frozen=True):
    """One key of the page. `fields` are filled in; `sure`: it is asked for twice; `supervisor`: theirs alone."""

    name: str
    fields: tuple[str, ...] = ()
    sure: bool = False
    supervisor: bool = False
    big: bool = False


KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key("bets_opened", big=True),
        Key("bell", big=True),
        Key("paid", big=True),
        Key("void", ("reason", "round"), sure=True),
        Key("new_shoe", ("decks",), sure=True),
        Key("cut_card"),
        Key("demo", sure=True),
        Key("dealer_relieved", sure=True),
        Key("table_closed", sure=True),
        Key("dice", ("faces", "stacked", "leaning")),
        Key("throw", ("faces", "throw_reason")),
        Key("dice_disturbed", sure=True),
        Key("dice_replaced", sure=True),
        Key("dice_seized", sure=True),
        Key("buttons_separated"),
        Key("buttons", ("count", "fragments")),
        Key("ball_launched", ("ball", "rotor")),
        Key("ball", ("pocket",)),
        Key("ball_replaced", ("pocket_or_none",), sure=True),
        Key("ball_changed", sure=True),
        Key("seat_opened", ("seat",)),
        Key("seat_closed", ("seat",)),
        Key("action", ("seat", "hand", "action", "amount")),
        Key("hand_passed", ("seat",)),
        Key("bet", ("seat", "bet", "amount")),
        Key("bet_back", ("seat", "bet", "amount")),
        Key("card_exposed", ("owner", "card")),
        Key("card_damaged", ("card",)),
        Key("correct", ("hands", "round"), sure=True, supervisor=True),
        Key("jackpot_won", ("level", "seat_or_none", "amount"), sure=True),
        Key("jackpot_paid", ("level", "seat_or_none", "amount"), sure=True, supervisor=True),
    )
}
_EVERY = ("bets_opened", "bell", "paid", "void")
_AFTER = ("dealer_relieved", "demo")
_BETS = ("bet", "bet_back")
"""For a table, or a bet, without sensors and terminals."""
_SHOE = ("new_shoe", "cut_card", "correct", "card_damaged")
_DICE = ("dice", "dice_disturbed", "dice_replaced", "dice_seized")
_BALL = ("ball_launched", "ball", "ball_replaced")
_OF_GAMES: Mapping[str, tuple[str, ...]] = {
    "angola.american-roulette": (
        *(*_EVERY, *_BALL, "ball_changed", "dealer_relieved", "table_closed", "seat_opened", "seat_closed"),
    ),
    "angola.cussec": (*_EVERY, *_DICE, *_AFTER),
    "angola.french-bank": (*_EVERY, "throw", *_DICE[1:], "dealer_relieved", "table_closed"),
    "angola.french-roulette": (*_EVERY, *_BALL, "ball_changed", "dealer_relieved", "table_closed"),
    "angola.craps": (*_EVERY, "throw", "hand_passed", "dice_replaced", "dice_seized", "table_closed", *_AFTER),
    "angola.baccarat": (*_EVERY, *_SHOE, "dealer_relieved", "table_closed"),
    "angola.baccarat-macau": (*_EVERY, *_SHOE, "dealer_relieved", "table_closed"),
    "angola.blackjack": (
        *(*_EVERY, "action", "seat_opened", "seat_closed", *_SHOE, "card_exposed", "jackpot_won", "jackpot_paid"),
        *("table_closed", *_AFTER),
    ),
    "macau.baccarat": (*_EVERY, *_SHOE, "jackpot_won", "jackpot_paid", *_AFTER),
    "macau.blackjack": (*_EVERY, "action", "seat_opened", "seat_closed", *_SHOE, "card_exposed", *_AFTER),
    "macau.cussec": (*_EVERY, *_DICE, *_AFTER),
    "macau.fantan": (*_EVERY, "buttons_separated", "buttons", *_AFTER),
    "macau.fish-prawn-crab": (*_EVERY, *_DICE, *_AFTER),
    "macau.roulette": (*_EVERY, *_BALL, *_AFTER),
    **dict.fromkeys(
        ("angola.stud-poker", "macau.stud-poker"),
        (
            *(*_EVERY, "action", "seat_opened", "seat_closed", *_SHOE, "card_exposed"),
            *("jackpot_won", "jackpot_paid", *_AFTER),
        ),
    ),
}
GAMES: Mapping[str, tuple[str, ...]] = {name: (*keys, *_BETS) for name, keys in _OF_GAMES.items()}
ACTED: Mapping[str, tuple[str, ...]] = {
    "angola.blackjack": ("hit", "stand", "double", "split", "insurance", "even_money", "surrender"),
    "macau.blackjack": (
        *("hit", "stand", "double", "split", "insurance", "even_money", "surrender", "five_cards", "decline"),
    ),
    **dict.fromkeys(("angola.stud-poker", "macau.stud-poker"), ("ante", "raise", "fold")),
}
TAPPED = frozenset({"angola.craps"})
"""Games of two dice, whose faces are tapped."""
_DICE_FIELDS = ("face_1", "face_2")
NULL_THROWS: Mapping[str, tuple[str, ...]] = {"angola.craps": ("", "a_die_off_the_table", "short_of_the_middle")}
"""Why a throw does not count, where the text names it."""
_FIELDS = {field for key in KEYS.values() for field in key.fields} - {"action", "seat_or_none"}
# What the page may say after a redirect; else anybody could make a link that puts words into it.
WRONG = frozenset(
    {"dealer.bad_id", "dealer.supervisor_only", "dealer.full", "dealer.disk", *(f"dealer.bad_{one}" for one in _FIELDS)}
)
_PLAIN: Mapping[str, fdl.Happening] = {
    "bets_opened": BetsOpened(),
    "bell": BetsClosed(),
    "paid": Paid(),
    "cut_card": CutCard(),
    "demo": DemoRound(),
    "dealer_relieved": DealerRelieved(),
    "table_closed": TableClosed(),
    "ball_changed": BallChanged(),
    "dice_disturbed": DiceDisturbed(),
    "dice_replaced": DiceReplaced(),
    "dice_seized": DiceSeized(),
    "buttons_separated": ButtonsSeparated(),
}


# ---- from a form to what happened


def _number(form: Mapping[str, str], name: str, least: int, most: int, default: int | None = None) -> int:
    text = form.get(name, "").strip()
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and least <= int(text) <= most):
        raise BadPress(f"dealer.bad_{name}")
    return int(text)


def _id(form: Mapping[str, str]) -> str:
    text = form.get("id", "")
    if not ID.fullmatch(text):
        raise BadPress("dealer.bad_id")
    return text


def _card(form: Mapping[str, str]) -> str | None:
    text = form.get("card", "").strip().upper().replace("10", "T")
    if text and text not in CARDS.values():
        raise BadPress("dealer.bad_card")
    return text or None


def _bet(form: Mapping[str, str]) -> str:
    text = form.get("bet", "").strip().lower()
    if not _BET.fullmatch(text):
        raise BadPress("dealer.bad_bet")
    return text


def _typed_faces(form: Mapping[str, str]) -> str:
    """Typed, or tapped die by die."""
    return form.get("faces", "") + "".join(form.get(name, "") for name in _DICE_FIELDS)


def _faces(form: Mapping[str, str]) -> tuple[int, ...]:
    text = re.sub(r"[\s,]+", "", _typed_faces(form))
    tapped = [name for name in _DICE_FIELDS if form.get(name)]
    if not re.fullmatch(r"[1-6]{0,16}", text) or (tapped and len(tapped) != len(_DICE_FIELDS)):
        raise BadPress("dealer.bad_faces")
    return tuple(map(int, text))


def _hands(form: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """ "player 9D KC", one hand a line."""
    found: dict[str, tuple[str, ...]] = {}
    for line in filter(str.strip, re.split(r"[\n;]", form.get("hands", "")[:2000])):
        hand, *cards = line.replace(":", " ").split()
        if hand.lower() in found:
            raise BadPress("dealer.bad_hands")
        found[hand.lower()] = tuple(card.upper().replace("10", "T") for card in cards)
    return tuple(found.items())


def _why(lang: words.Lang, code: str, none: str) -> str:
    """A reason of the console as a person chooses it; `none` is the key for none."""
    return words.say(lang, f"reason.{code}" if code else none)


def _reason(form: Mapping[str, str], name: str, known: Mapping[int, str]) -> int:
    number = _number(form, name, 0, 255, 0)
    if number not in known:
        raise BadPress(f"dealer.bad_{name}")
    return number


def _round(form: Mapping[str, str]) -> str:
    """The round that is named, or nothing: then the one on the table is meant."""
    text = form.get("round", "").strip()
    if not _ROUND.fullmatch(text):
        raise BadPress("dealer.bad_round")
    return text


def _turn(form: Mapping[str, str], name: str) -> int:
    return _number(form, name, CLOCKWISE, ANTICLOCKWISE)


def happenings_of(key: str, form: Mapping[str, str], *, supervisor: bool) -> tuple[fdl.Happening, ...]:
    """What a key with its values says. Raises BadPress; nothing is guessed."""
    if KEYS[key].supervisor and not supervisor:
        raise BadPress("dealer.supervisor_only")
    if key in _PLAIN:
        return (_PLAIN[key],)
    happening = _with_values(key, form)
    try:
        again = type(happening).from_bytes(happening.to_bytes())
    except (ValueError, OverflowError) as error:
        raise BadPress(f"dealer.bad_{KEYS[key].fields[0]}") from error
    if again != happening:  # nobody could read it
        raise BadPress(f"dealer.bad_{KEYS[key].fields[0]}")
    theirs = KEYS[key].supervisor or (isinstance(happening, RoundVoid) and happening.reason == SUPERVISORS_DECISION)
    if theirs and not supervisor:
        raise BadPress("dealer.supervisor_only")
    return (SupervisorKey(on=True), happening, SupervisorKey(on=False)) if theirs else (happening,)


def _with_values(key: str, form: Mapping[str, str]) -> fdl.Happening:  # noqa: C901 - a case for each key
    match key:
        case "void":
            return RoundVoid(_reason(form, "reason", VOID_REASONS), _round(form))
        case "new_shoe":
            return NewShoe(_number(form, "decks", 0, 12, 0))
        case "dice":
            return DiceEntered(_faces(form), _number(form, "stacked", 0, 16, 0), _number(form, "leaning", 0, 16, 0))
        case "throw":
            return DiceThrown(_faces(form), _reason(form, "throw_reason", THROW_REASONS))
        case "buttons":
            return ButtonsCounted(_number(form, "count", 1, 65535), _number(form, "fragments", 0, 255, 0))
        case "ball_launched":
            return BallLaunched(_turn(form, "ball"), _turn(form, "rotor"))
        case "ball":
            return BallEntered(form.get("pocket", "").strip())
        case "ball_replaced":
            return BallReplaced(form.get("pocket", "").strip() or None)
        case "seat_opened":
            return SeatOpened(_number(form, "seat", 1, 99))
        case "seat_closed":
            return SeatClosed(_number(form, "seat", 1, 99))
        case "action":
            wanted = form.get("action", "")
            code = next((code for code, word in ACTIONS.items() if word == wanted), 0)
            amount = _number(form, "amount", 0, fdl.MAX_COUNTER, 0)
            return SeatAction(_number(form, "seat", 1, 99), code, _number(form, "hand", 1, 9, 1), amount)
        case "bet" | "bet_back":
            made, least = (BetPlaced, 1) if key == "bet" else (BetWithdrawn, 0)
            amount = _number(form, "amount", least, fdl.MAX_COUNTER, None if least else 0)
            return made(_number(form, "seat", 1, 99), _bet(form), amount)
        case "hand_passed":
            return HandPassed(_number(form, "seat", 0, 99, 0))
        case "card_exposed":
            return CardExposed(form.get("owner", "").strip().lower(), _card(form))
        case "card_damaged":
            return CardDamaged(_card(form))
        case "correct":
            return Corrected(_hands(form), _round(form))
        case _:
            won = JackpotWon if key == "jackpot_won" else JackpotPaid
            amount = _number(form, "amount", 0, fdl.MAX_COUNTER, 0)
            return won(_number(form, "level", 0, 32, 0), _number(form, "seat", 0, 99, 0), amount)


def _detail(key: str, form: Mapping[str, str]) -> str:
    """The values, for the list of presses and the log of actions; never a card."""
    if key in ("correct", "card_exposed", "card_damaged"):
        return ""
    names = {"pocket_or_none": "pocket", "seat_or_none": "seat"}
    typed = dict(form) | {"faces": _typed_faces(form)}
    given = [typed.get(names.get(name, name), "").strip()[:40] for name in KEYS[key].fields]
    return " ".join(filter(None, given))


# ---- pages


class Dealers:
    """All dealer pages of this console."""

    def __init__(self, context: ConsoleContext) -> None:
        """Raises BadStore."""
        self._context = context
        self._addresses = context.config.console.dealer
        self.units = {table: Unit(context.store, table, context.now) for table in self._addresses}
        self._changed: dict[str, set[asyncio.Event]] = {table: set() for table in self.units}
        for table, unit in self.units.items():
            unit.on_change = self._tell(table)
        context.site.on_change.append(self._site_changed)

    def _tell(self, table: str) -> Callable[[], None]:
        def tell() -> None:
            for event in self._changed[table]:
                event.set()

        return tell

    def _site_changed(self, key: str) -> None:
        table = key.removeprefix("table/")
        for one in [table] if table in self._changed else self._changed if key in ("broker", "edges") else ():
            self._tell(one)()

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[dict[str, int]]:
        """Listen for the edge; the ports by table. Raises BadDealer."""
        async with serve(list(self.units.values()), self._addresses) as ports:
            yield ports

    def routes(self) -> list[Route]:
        """The page of a table, its keys and its stream."""
        return [
            Route("/dealer", self.first),
            Route("/dealer/{table}", self.page),
            Route("/dealer/{table}/key/{key}", self.key, methods=["POST"]),
            Route("/dealer/{table}/stream", self.stream),
        ]

    def tables_of(self, user: User) -> list[str]:
        """Those with a page where they may deal."""
        return [table for table in self.units if not user.tables or table in user.tables]

    async def first(self, request: Request) -> Response:
        """To the first of one's tables: the page of each leads to the others. Who has none goes where he begins."""
        user = self._context.needs(request, "deal")
        tables = self.tables_of(user)
        return RedirectResponse(
            f"/dealer/{tables[0]}" if tables else home(self._context.config.console, user.role, user.tables), 303
        )

    def _unit(self, request: Request) -> Unit:
        """Raises 404, 403, or the way to the login."""
        table: str = request.path_params["table"]
        self._context.needs(request, "deal", table)
        unit = self.units.get(table)
        if unit is None:
            raise HTTPException(404)
        return unit

    def keys(self, table: str) -> list[Key]:
        """Those of the table's game; of no game, all."""
        return [KEYS[name] for name in GAMES.get(self._context.site.ruleset(table), tuple(KEYS))]

    def _phase(self, table: str) -> str:
        view = self._context.site.tables.get(table)
        known = view is not None and self._context.site.connected and self._context.site.rules() is True
        return view.phase if view is not None and known and view.phase != "-" else "unknown"

    def _rounds(self, table: str) -> list[str]:
        """The newest rounds that ended, to be named."""
        view = self._context.site.tables.get(table)
        names = [one.round for one in list(view.results)[-2:]] if view is not None else []
        return [name for name in reversed(names) if _ROUND.fullmatch(name)]

    def _now(self, unit: Unit, lang: words.Lang) -> dict[str, Any]:
        """What the page shows beside its keys."""
        phase = self._phase(unit.table)
        view = self._context.site.tables.get(unit.table)
        detail = RoundFacts() if view is None else facts_of(view.detail)
        why, remedy = ("", "") if view is None or phase == "unknown" else shapes.doubt(view, detail, lang)
        shown = f"phase.{phase}" if phase != "unknown" else "dealer.unknown"
        if phase == "closed" and detail.next == "burn":
            shown = "dealer.burn_due"
        return {
            "edge": unit.met,
            "waiting": unit.waiting,
            "phase": words.say(lang, shown),
            "why": why,
            "remedy": remedy,
            "last": [_shown(one, lang) for one in unit.last(SHOWN)],
            "refusals": [] if view is None else [_refusal(one, lang) for one in reversed(view.refusals)],
            "duties": [{"name": one.name, "law": one.law, "at": utc(one.at)} for one in shapes.duties(detail, lang)],
        }

    async def page(self, request: Request) -> Response:
        unit = self._unit(request)
        user = self._context.needs(request, "deal", unit.table)
        ruleset = self._context.site.ruleset(unit.table)
        lang = self._context.lang(request)
        keys = [key for key in self.keys(unit.table) if not key.supervisor or user.role == "supervisor"]
        reasons = [number for number in VOID_REASONS if number != SUPERVISORS_DECISION or user.role == "supervisor"]
        pressed = unit.find(request.query_params.get("pressed", ""))
        wrong = request.query_params.get("wrong", "")
        return self._context.page(
            request,
            "dealer_page.html",
            table=unit.table,
            tables=self.tables_of(user),
            blocks=[
                [key for key in keys if key.sure or not key.fields],
                [key for key in keys if key.fields and not key.sure],
            ],
            ids={key.name: uuid.uuid4().hex for key in keys},
            choices={
                "reason": [(number, _why(lang, VOID_REASONS[number], "dealer.void_0")) for number in reasons],
                "throw_reason": [
                    (number, _why(lang, code, "dealer.throw_0"))
                    for number, code in THROW_REASONS.items()
                    if code in NULL_THROWS.get(ruleset, THROW_REASONS.values())
                ],
                "action": [(one, words.say(lang, f"dealer.act_{one}")) for one in ACTED.get(ruleset, ACTIONS.values())],
                "ball": [(turn, words.say(lang, f"dealer.turn_{turn}")) for turn in (CLOCKWISE, ANTICLOCKWISE)],
                "rotor": [(turn, words.say(lang, f"dealer.turn_{turn}")) for turn in (ANTICLOCKWISE, CLOCKWISE)],
                "pocket": [(pocket, pocket) for pocket in _POCKETS[1:]],
                "pocket_or_none": [(pocket, pocket or "–") for pocket in _POCKETS],
            },
            seats=range(1, SEATS + 1),
            dice=(1, 2) if ruleset in TAPPED else (),
            rounds=self._rounds(unit.table),
            standing=self._now(unit, lang),
            pressed=_shown(pressed, lang) if pressed else None,
            wrong=words.say(lang, wrong) if wrong in WRONG else "",
        )

    async def key(self, request: Request) -> Response:
        """One key. Answered once it stands in the store, and not before."""
        unit = self._unit(request)
        user = self._context.needs(request, "deal", unit.table)
        name: str = request.path_params["key"]
        if name not in {key.name for key in self.keys(unit.table)}:
            raise HTTPException(404)
        form = await self._context.form(request)
        lang = self._context.lang(request)
        scripted = "application/json" in request.headers.get("accept", "")
        try:
            happenings = happenings_of(name, form, supervisor=user.role == "supervisor")
            press = Press(_id(form), name, happenings, _detail(name, form))
            pressed = unit.press(press, By(user.name, user.role), asyncio.get_running_loop().time())
        except (BadPress, Full, Other, BadStore, sqlite3.Error) as error:
            bad, status = refused(error)
            if scripted:
                return JSONResponse({"wrong": words.say(lang, bad)}, status)
            return RedirectResponse(f"/dealer/{unit.table}?wrong={bad}", 303)
        self._context.actions.collect()
        if scripted:
            return JSONResponse(_shown(pressed, lang))
        return RedirectResponse(f"/dealer/{unit.table}?pressed={pressed.id}", 303)

    async def stream(self, request: Request) -> Response:
        unit = self._unit(request)
        if len(self._changed[unit.table]) >= MOST_VIEWERS:
            raise HTTPException(503)
        follow = self._follow(unit, self._context.lang(request), lambda: self._context.still(request))
        return StreamingResponse(follow, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def _follow(self, unit: Unit, lang: words.Lang, still: Callable[[], bool]) -> AsyncIterator[bytes]:
        """How things stand, now and whenever that changes; a sign of life between."""
        changed = asyncio.Event()
        self._changed[unit.table].add(changed)
        try:
            while still():
                changed.clear()
                yield b"data: " + msgspec.json.encode(self._now(unit, lang)) + b"\n\n"
                await asyncio.sleep(PAUSE)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT):
                        await changed.wait()
            yield b"event: over\ndata: \n\n"
        finally:
            self._changed[unit.table].discard(changed)


def refused(error: Exception) -> tuple[str, int]:
    """The words for it, and the status: 400 is for what cannot be pressed so, 503 for what can be tried again."""
    match error:
        case BadPress():
            return error.key, 400
        case Other():
            return "dealer.bad_id", 400
        case Full():
            return "dealer.full", 503
        case _:
            return "dealer.disk", 503


def _refusal(one: WagerAnswer, lang: words.Lang) -> str:
    """Whose bet was refused, and why."""
    reason = one.reason or Reason(one.code)
    text = words.noted(lang, Irregularity(one.code, reason, one.law))
    return " · ".join(filter(None, (one.terminal, text, one.law)))


def _shown(pressed: Pressed, lang: words.Lang) -> dict[str, str]:
    """One of two entries is not shown: the other is to be made without it."""
    return {
        "id": pressed.id,
        "at": utc(pressed.at),
        "key": words.say(lang, f"dealer.{pressed.key}"),
        "detail": "" if pressed.state in ("again", "differs") else pressed.detail,
        "state": pressed.state,
        "text": words.say(lang, f"dealer.state_{pressed.state}"),
    }
