"""The dealer's page: an alternative to the hardware console that needs only the edge.

One request for each key, with a random id from the page: a double tap or a repeated request is one key. The page shows
which presses are stored here and which the edge has made durable (daemon/console/dealer/unit.py). A correction, a
reversed fold, an approved machine, a jackpot's payment and a void by the supervisor's decision are a supervisor's:
where a console has a key to turn, this page checks the user's role.
"""

import asyncio
import contextlib
import re
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.config.model import Table
from daemon.console import shapes
from daemon.console.auth.access import User, home
from daemon.console.context import ConsoleContext
from daemon.console.dealer.cloth import Cloth, cloth_of
from daemon.console.dealer.keys import (
    BETTING,
    GRIDS,
    KEYS,
    PLAYING,
    Key,
    Moment,
    group_of,
    hand_names,
    keys_of,
    live_actions,
    live_keys,
    missing_hands,
    next_key,
    next_step,
    seats_taken,
    turn,
    ways_out,
)
from daemon.console.dealer.unit import By, Full, Other, Press, Pressed, Unit, serve
from daemon.console.games import GAMES, family_of
from daemon.console.games.game import DOME, ConsoleGame
from daemon.console.site.pools import Pools
from daemon.console.site.store import BadStore
from daemon.views import TableView, utc
from daemon.words import words
from daemon.words.local import Local
from daemon.words.money import BadAmount, minor_units, money
from drivers import DRIVERS
from protocols.contract import events
from protocols.contract.facts import (
    BaccaratFacts,
    BlackjackFacts,
    CheminFacts,
    StudPokerFacts,
    UnbankedPokerFacts,
    of_kind,
)
from protocols.contract.payouts import payout_order
from protocols.contract.reasons import Reason
from protocols.contract.results import Irregularity, Result
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
    DiceCovered,
    DiceDisturbed,
    DiceEntered,
    DiceReplaced,
    DiceSeized,
    DiceThrown,
    DiceUncovered,
    HandPassed,
    JackpotPaid,
    JackpotWon,
    MachineApproved,
    NewShoe,
    Paid,
    RoundVoid,
    SeatAction,
    SeatClosed,
    SeatOpened,
    SupervisorKey,
    TableClosed,
)
from rules.facts import facts_of_result

__all__ = ["ID", "KEYS", "WRONG", "BadPress", "Dealers", "happenings_of", "refused"]

SHOWN = 12
HEARTBEAT = 2.0
PAUSE = 0.05
MOST_VIEWERS = 20
MOST_DICE = 3
GROUPS = ("round", "game", "bets", "rare", "grave")
EXTRA_FORMS = ["whole", "name_seats"]
"""Forms besides those of the keys, which have their own ids."""
RANKS = "A23456789TJQK"
USUAL_RED = frozenset(map(str, (1, 3, 5, 7, 9, 12, 14, 16, 18, 19, 21, 23, 25, 27, 30, 32, 34, 36)))
# Events that come after the payment of a round, or decide the next one.
_PLAYED = frozenset(
    {"bets.closed", "card.drawn", "hand.dispensed", "ball.landed", "dice.read", "dice.thrown", "buttons.counted"}
    | {"deal.corrected", "seat.acted", "player.acted"}
)
ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_ROUND = re.compile(rf"[a-z0-9:-]{{0,{MAX_ROUND}}}")
DECIDES = ("void", "correct")
"""Keys whose note in the log of actions names the round."""
_BET = re.compile(rf"[a-z0-9_:-]{{1,{MAX_BET}}}")
_ANY = ConsoleGame("", ())
"""The data of an unknown game."""
_POCKETS = ("", *map(str, range(37)), "00", "000", "0000")


class BadPress(Exception):
    """The typed text is no value of this key. `key` is its text in the catalogs."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


_FIELDS = {field for key in KEYS.values() for field in key.fields} - {"action", "seat_or_none"}
# The texts that the page may show after a redirect: a link must not be able to choose any text.
WRONG = frozenset(
    {"dealer.bad_id", "dealer.supervisor_only", "dealer.full", "dealer.disk"}
    | {"dealer.off_no_showdown", "dealer.insurance_amount"}
    | {f"dealer.bad_{one}" for one in _FIELDS}
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
    "dice_covered": DiceCovered(),
    "dice_uncovered": DiceUncovered(),
    "dice_disturbed": DiceDisturbed(),
    "dice_replaced": DiceReplaced(),
    "dice_seized": DiceSeized(),
    "buttons_separated": ButtonsSeparated(),
}


# ---- from a form to events


def _number(form: Mapping[str, str], name: str, least: int, most: int, default: int | None = None) -> int:
    text = form.get(name, "").strip()
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and least <= int(text) <= most):
        raise BadPress(f"dealer.bad_{name}")
    return int(text)


def in_minor_units(form: Mapping[str, str], decimals: int) -> Mapping[str, str]:
    """The form with its `sum`, as typed, converted to the `amount` in minor units. Raises BadPress."""
    if not (text := form.get("sum", "").strip()):
        return form
    try:
        return {**form, "amount": str(minor_units(text, decimals))}
    except BadAmount as error:
        raise BadPress("dealer.bad_amount") from error


def _id(form: Mapping[str, str]) -> str:
    text = form.get("id", "")
    if not ID.fullmatch(text):
        raise BadPress("dealer.bad_id")
    return text


def _card(form: Mapping[str, str]) -> str | None:
    text = (form.get("card", "").strip().upper() or form.get("rank", "") + form.get("suit", "")).replace("10", "T")
    if text and text not in CARDS.values():
        raise BadPress("dealer.bad_card")
    return text or None


def _bet(form: Mapping[str, str]) -> str:
    text = form.get("bet", "").strip().lower()
    if not _BET.fullmatch(text):
        raise BadPress("dealer.bad_bet")
    return text


def _typed_faces(form: Mapping[str, str]) -> str:
    """The faces, typed or tapped die by die."""
    return form.get("faces", "") + "".join(form.get(f"face_{die}", "") for die in range(1, MOST_DICE + 1))


def _faces(form: Mapping[str, str]) -> tuple[int, ...]:
    text = re.sub(r"[\s,]+", "", _typed_faces(form))
    tapped = [die for die in range(1, MOST_DICE + 1) if form.get(f"face_{die}")]
    if not re.fullmatch(r"[1-6]{0,16}", text) or (tapped and form.get("dice", "2") != str(len(tapped))):
        raise BadPress("dealer.bad_faces")
    return tuple(map(int, text))


def _hands(form: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """ "player 9D KC", one hand a line."""
    found: dict[str, tuple[str, ...]] = {f"seat_{seat}": () for seat in range(1, 100) if form.get(f"seat_on_{seat}")}
    for line in filter(str.strip, re.split(r"[\n;]", form.get("hands", "")[:2000])):
        hand, *cards = line.replace(":", " ").split()
        if hand.lower() in found:
            raise BadPress("dealer.bad_hands")
        found[hand.lower()] = tuple(card.upper().replace("10", "T") for card in cards)
    return tuple(found.items())


def _why(lang: words.Lang, code: str, none: str) -> str:
    """A reason of the console in words; `none` is the key for none."""
    return words.say(lang, f"reason.{code}" if code else none)


def _reason(form: Mapping[str, str], name: str, known: Mapping[int, str]) -> int:
    number = _number(form, name, 0, 255, 0)
    if number not in known:
        raise BadPress(f"dealer.bad_{name}")
    return number


def _round(form: Mapping[str, str]) -> str:
    """The named round, or "" for the one on the table."""
    text = form.get("round", "").strip()
    if not _ROUND.fullmatch(text):
        raise BadPress("dealer.bad_round")
    return text


def _turn(form: Mapping[str, str], name: str) -> int:
    return _number(form, name, CLOCKWISE, ANTICLOCKWISE)


def happenings_of(key: str, form: Mapping[str, str], *, supervisor: bool) -> tuple[fdl.Happening, ...]:
    """The events of a key with its values. Raises BadPress; nothing is guessed."""
    if KEYS[key].supervisor and not supervisor:
        raise BadPress("dealer.supervisor_only")
    if key in _PLAIN:
        return (_PLAIN[key],)
    happening, (field, *_) = _with_values(key, form), KEYS[key].fields or ("id",)
    try:
        again = type(happening).from_bytes(happening.to_bytes())
    except (ValueError, OverflowError) as error:
        raise BadPress(f"dealer.bad_{field}") from error
    if again != happening:  # the edge could not read it
        raise BadPress(f"dealer.bad_{field}")
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
            counted = {"count": form.get("whole", "")} | dict(form)  # what is left, or the whole heap
            return ButtonsCounted(_number(counted, "count", 1, 65535), _number(form, "fragments", 0, 255, 0))
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
        case "fold_reversed":
            raises = next(code for code, word in ACTIONS.items() if word == "raise")
            return SeatAction(_number(form, "seat", 1, 99), raises, 1, 0)
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
        case "approve_machine":
            return MachineApproved(form.get("by", ""), _round(form))
        case "correct":
            return Corrected(_hands(form), _round(form))
        case "showdown":
            return Corrected(_hands(form))
        case _:
            won = JackpotWon if key == "jackpot_won" else JackpotPaid
            amount = _number(form, "amount", 0, fdl.MAX_COUNTER, 0)
            return won(_number(form, "level", 0, 32, 0), _number(form, "seat", 0, 99, 0), amount)


def _values(key: str, form: Mapping[str, str]) -> dict[str, str]:
    """The filled-in values by field, for the list of presses and the log of actions; never a card."""
    if key in ("correct", "showdown", "card_exposed", "card_damaged"):
        return {}
    typed = {"count": form.get("whole", "")} | dict(form) | {"faces": _typed_faces(form)}
    names = [{"pocket_or_none": "pocket", "seat_or_none": "seat"}.get(name, name) for name in KEYS[key].fields]
    given = {name: typed.get(name, "").strip()[:40] for name in names}
    return {name: value for name, value in given.items() if value}


def dome_is_reported(table: Table) -> bool:
    """Whether the dome needs no keys, because a device reports it or it is a part of the shaker."""
    shakers = (DRIVERS[one.driver] for one in table.device if one.driver in DRIVERS and one.driver != "fdl_console")
    return table.options.get("dome") == "fixed" or any(events.DiceCovered in one.emits for one in shakers)


# ---- pages


class Dealers:
    """All dealer pages of this console."""

    def __init__(self, context: ConsoleContext, paid: Mapping[str, str], pools: Pools) -> None:
        """`paid`: by table, the round that was paid last. Raises BadStore."""
        self._paid = paid
        self._pools = pools
        self._context = context
        self.units = {table: Unit(context.store, table, context.now) for table in context.config.console.dealer}
        tables = {one.name: one for one in context.config.table}
        self._tables = tables
        self._domes = {name for name, table in tables.items() if dome_is_reported(table)}
        self._cloths = {table: cloth_of(tables.get(table)) for table in self.units}
        self._changed: dict[str, set[asyncio.Event]] = {table: set() for table in self.units}
        for table, unit in self.units.items():
            unit.on_change = self._notifier(table)
        context.site.on_change.append(self._site_changed)

    def _notifier(self, table: str) -> Callable[[], None]:
        def notify() -> None:
            for event in self._changed[table]:
                event.set()

        return notify

    def _site_changed(self, key: str) -> None:
        table = key.removeprefix("table/")
        for one in [table] if table in self._changed else self._changed if key in ("broker", "edges") else ():
            self._notifier(one)()

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Listen for the edge. Raises BadDealer."""
        console = self._context.config.console
        async with serve(list(self.units.values()), console.dealer, console.edge_user):
            yield

    def routes(self) -> list[Route]:
        """The redirect to a first table; the page of a table, its keys and its stream."""
        return [
            Route("/dealer", self.first),
            Route("/dealer/{table}", self.page),
            Route("/dealer/{table}/key/{key}", self.key, methods=["POST"]),
            Route("/dealer/{table}/stream", self.stream),
        ]

    def tables_of(self, user: User) -> list[str]:
        """The tables with a page where the user may deal."""
        return [table for table in self.units if not user.tables or table in user.tables]

    async def first(self, request: Request) -> Response:
        """Redirect to the first of the user's tables, or to the user's start page."""
        user = self._context.needs(request, "deal")
        tables = self.tables_of(user)
        return RedirectResponse(
            f"/dealer/{tables[0]}" if tables else home(self._context.config.console, user.role, user.tables), 303
        )

    def _unit(self, request: Request) -> Unit:
        """The unit of the requested table. Raises 404, 403, or Redirect to the login."""
        table: str = request.path_params["table"]
        self._context.needs(request, "deal", table)
        unit = self.units.get(table)
        if unit is None:
            raise HTTPException(404)
        return unit

    def configured(self, table: str) -> Table | None:
        """The configured table."""
        return self._tables.get(table)

    def places(self, table: str, lang: words.Lang) -> list[tuple[str, str]]:
        """The bets that the table offers, by name, with their words."""
        families = self._cloths[table].families if table in self._cloths else {}
        names = [f"{family}:{place}" if place else family for family, places in families.items() for place in places]
        return [(name, _whole_bet(lang, name)) for name in names]

    def keys(self, table: str) -> list[Key]:
        """The keys of the table's game; without a game, all."""
        names = keys_of(self._context.site.ruleset(table))
        return [KEYS[name] for name in names if name not in DOME or table not in self._domes]

    def _phase(self, table: str) -> str:
        view = self._context.site.tables.get(table)
        known = view is not None and self._context.site.connected and self._context.site.rules() is True
        return view.phase if view is not None and known and view.phase != "-" else "unknown"

    def _rounds(self, table: str) -> list[str]:
        """The newest rounds that ended, to be named."""
        view = self._context.site.tables.get(table)
        names = [one.round for one in list(view.results)[-2:]] if view is not None else []
        return [name for name in reversed(names) if _ROUND.fullmatch(name)]

    def _meant(self, table: str, form: Mapping[str, str]) -> str:
        """The named round, otherwise the one on the table, open or last, as far as it was received."""
        view = self._context.site.tables.get(table)
        last = view.results[-1].round if view is not None and view.results else ""
        return form.get("round", "").strip() or (view.round if view is not None else "") or last

    def _moment(self, table: str) -> Moment:
        """The state of the table, for the keys."""
        phase, view = self._phase(table), self._context.site.tables.get(table)
        if view is None:
            return Moment(phase)
        ended = bool(view.round) and any(one.round == view.round for one in view.results)
        return Moment(phase, view.facts, ended, _paid(view, self._paid.get(table, "")))

    def _now(self, unit: Unit, lang: words.Lang, *, supervisor: bool = False) -> dict[str, Any]:
        """The contents of the page besides its keys, and which keys are enabled."""
        table = unit.table
        moment, view = self._moment(table), self._context.site.tables.get(table)
        ruleset = self._context.site.ruleset(table)
        game, detail = family_of(ruleset), moment.detail
        shown = f"phase.{moment.phase}" if moment.phase != "unknown" else "dealer.unknown"
        if moment.phase == "closed" and of_kind(BaccaratFacts, detail).next == "burn":
            shown = "dealer.burn_due"
        live, seats = live_keys(ruleset, moment), of_kind(StudPokerFacts, detail).seats
        return {
            "edge": unit.met and not self._is_silent(self._context.config.edge.name),
            "troubles": self._troubles(table, lang),
            "waiting": unit.unrecorded,
            "phase": words.say(lang, shown),
            "next": _next(ruleset, moment, lang),
            "due": next_key(ruleset, moment),
            "no_decision": words.say(lang, "dealer.off_no_decision"),
            "not_allowed": words.say(lang, "dealer.off_not_allowed"),
            "way": "showdown" if missing_hands(moment) else "",
            "now": "" if view is None else self._drawn(view, ruleset, moment, lang, supervisor=supervisor),
            "keys": {key: words.say(lang, f"dealer.off_{why}") if why else "" for key, why in live.items()},
            "actions": {str(seat): actions for seat, actions in live_actions(game, moment).items()},
            "seats": seats_taken(moment),
            "turn": turn(moment),
            "known": bool(game) and moment.phase != "unknown" and isinstance(seats, tuple),
            "rows": self._rows(moment, ruleset, lang),
            "hands": [(name, shapes.hand_words(name, lang), cards) for name, cards in hand_names(ruleset, moment)],
            "missing": missing_hands(moment),
            "last": [self._shown(one, ruleset, lang) for one in unit.last(SHOWN)],
            "refusals": [] if view is None else [_refusal(one, lang) for one in reversed(view.refusals)],
            "duties": [
                {"name": one.name, "law": one.law, "at": utc(one.at), "time": self._local(lang).minute(one.at)}
                for one in shapes.duties(detail, lang)
            ],
        }

    def _is_silent(self, process: str) -> bool:
        """Whether its heartbeat stopped: its connections stay open while it hangs."""
        edge = self._context.site.edges.get(process)
        return edge is not None and edge.silent

    def _troubles(self, table: str, lang: words.Lang) -> list[str]:
        """The missing processes that the table needs besides the edge, with the consequences."""
        config, site = self._context.config, self._context.site
        needed = [("rules", config.rules.name)] if site.ruleset(table) else []
        if any(table in pool.tables for pool in config.jackpot):
            needed.append(("jackpots", config.jackpots.name))
        down = [kind for kind, name in needed if site.connected and name in site.edges and not site.is_online(name)]
        return [words.say(lang, f"dealer.{kind}_away") for kind in down]

    def _rows(self, moment: Moment, ruleset: str, lang: words.Lang) -> dict[str, dict[str, Any]]:
        """The seats, each with its cards or chips, the hand that it decides for, and the insurance of its key."""
        facts = of_kind(BlackjackFacts, moment.detail)
        rows: dict[str, dict[str, Any]] = {}
        for hand in shapes.round_shape(moment.detail, lang).hands:
            if hand.kind == "seat" and hand.seat:
                cards = " ".join(f"{card.rank}{card.suit}" if card.rank else "?" for card in hand.cards)
                said = f"{cards} = {hand.total}" if hand.total is not None else cards
                row = rows.setdefault(str(hand.seat), {"text": "", "hand": 1})
                row["text"] = " | ".join(filter(None, (row["text"], said)))
        poker = of_kind(UnbankedPokerFacts, moment.detail)
        for name in poker.stacks:
            held = (self._context.amount(lang, one.get(name, 0), ruleset) for one in (poker.stacks, poker.laid))
            chips = words.say(lang, "dealer.chips", stack=next(held), laid=next(held))
            row = rows.setdefault(name.removeprefix("seat_"), {"text": "", "hand": 1})
            row["text"] = " | ".join(filter(None, (row["text"], chips)))
        chemin = of_kind(CheminFacts, moment.detail)
        for name, laid in chemin.laid.items():
            text = words.say(lang, "dealer.covers", laid=self._context.amount(lang, laid, ruleset))
            rows[name.removeprefix("seat_")] = {"text": text, "hand": 1}
        if chemin.banker:
            sums = [self._context.amount(lang, held, ruleset) for held in (chemin.bank, chemin.covered)]
            text = words.say(lang, "dealer.bank_is", bank=sums[0], laid=sums[1])
            rows[str(chemin.banker)] = {"text": text, "hand": 1}
        for seat, amount in facts.insurance.items():
            text = f"{words.say(lang, 'dealer.act_insurance')} {self._context.amount(lang, amount, ruleset)}"
            rows.setdefault(seat, {"text": ""}).update(insurance=amount, insurance_text=text)
        if facts.due is not None and facts.due.kind == "decision":
            number = facts.due.hand.partition(".")[2]
            rows.setdefault(str(facts.due.seat), {"text": ""})["hand"] = int(number) if number.isdecimal() else 1
        return rows

    def _drawn(self, view: TableView, ruleset: str, moment: Moment, lang: words.Lang, *, supervisor: bool) -> str:
        """The round on the table, its doubt and the ways out of it, and the last result."""
        why, remedy = shapes.doubt(view, moment.detail, lang) if moment.phase != "unknown" else ("", "")
        result = view.results[-1] if view.results else None
        open_ = moment.phase in BETTING | PLAYING or (moment.phase == "suspended" and not moment.ended)
        return self._context.render(
            "_dealer_now.html",
            lang,
            table=view,
            ruleset=ruleset,
            open_=open_,
            why=why,
            remedy=remedy,
            ways=ways_out(ruleset, moment),
            supervisor=supervisor,
            round=shapes.round_shape(moment.detail, lang) if open_ else None,
            result=result,
            result_shape=shapes.round_shape(facts_of_result(result), lang) if result else None,
            chip=shapes.chip(result, lang) if result else None,
            payments=payments_of(result, lang) if result and not open_ else (),
            prizes=self._prizes(result, lang) if result and not open_ else [],
        )

    def _prizes(self, result: Result, lang: words.Lang) -> list[tuple[int, str, str]]:
        """Seat, combination and amount of the jackpot prizes of the round that the dealer pays at the table."""
        found = []
        for pool in self._pools:
            for win in pool.open_wins:
                if pool.level is not None and win.at_table and win.round == result.round:
                    level, name = pool.level, words.say(lang, f"combination.{win.award.combination}")
                    found += [
                        (seat, name, money(lang, amount, level.decimals, level.currency)) for seat, amount in win.shares
                    ]
        return found

    async def page(self, request: Request) -> Response:
        unit = self._unit(request)
        user = self._context.needs(request, "deal", unit.table)
        ruleset = self._context.site.ruleset(unit.table)
        lang, supervisor = self._context.lang(request), user.role == "supervisor"
        keys = [key for key in self.keys(unit.table) if not key.supervisor or supervisor]
        pressed = unit.find(request.query_params.get("pressed", ""))
        wrong, game = request.query_params.get("wrong", ""), GAMES.get(ruleset, _ANY)
        cloth = self._cloths[unit.table]
        return self._context.page(
            request,
            "dealer_page.html",
            table=unit.table,
            tables=self.tables_of(user),
            ruleset=ruleset,
            groups={group: [key for key in keys if group_of(key, ruleset) == group] for group in GROUPS},
            ids={name: uuid.uuid4().hex for name in [key.name for key in keys] + EXTRA_FORMS + list(cloth.places)},
            grid=game.actions if game.family in GRIDS else (),
            choices=self._choices(ruleset, lang, cloth, supervisor=supervisor),
            rounds=self._rounds(unit.table),
            cloth=cloth,
            dice=game.dice,
            figures=game.figures,
            pockets=game.pockets or _POCKETS[1:39],
            red=USUAL_RED,
            standing=self._now(unit, lang, supervisor=supervisor),
            decimals=self._context.config.site.decimals,
            pressed=self._shown(pressed, ruleset, lang) if pressed else None,
            wrong=words.say(lang, wrong) if wrong in WRONG else "",
            bet_words=partial(_bet_words, lang),
            place_words=partial(_place_words, lang),
        )

    def _local(self, lang: words.Lang) -> Local:
        return Local(lang, self._context.zone)

    def _shown(self, pressed: Pressed, ruleset: str, lang: words.Lang) -> dict[str, str]:
        """A press for the list. The first of two entries is hidden, so that the second is made independently."""
        local = self._local(lang)
        today = local.day(self._context.now()) == local.day(pressed.at)
        return {
            "id": pressed.id,
            "at": utc(pressed.at),
            "time": local.clock(pressed.at) if today else f"{local.short_day(pressed.at)} {local.clock(pressed.at)}",
            "key": words.say(lang, f"dealer.{pressed.key}"),
            "detail": "" if pressed.state in ("again", "differs") else self._in_words(pressed, ruleset, lang),
            "state": pressed.state,
            "text": words.say(lang, f"dealer.state_{pressed.state}"),
        }

    def _in_words(self, pressed: Pressed, ruleset: str, lang: words.Lang) -> str:
        """The filled-in values in words, without empty ones."""

        def amount(minor: int) -> str:
            return self._context.amount(lang, minor, ruleset)

        shown = (_value_in_words(pressed.values, name, lang, amount) for name in pressed.values)
        return " · ".join(filter(None, shown))

    def _choices(
        self, ruleset: str, lang: words.Lang, cloth: Cloth, *, supervisor: bool
    ) -> dict[str, list[tuple[Any, str]]]:
        """The values of each field that is tapped or chosen, with their words."""
        game = GAMES.get(ruleset, _ANY)
        reasons = [number for number in VOID_REASONS if number != SUPERVISORS_DECISION or supervisor]
        seats = [(seat, str(seat)) for seat in cloth.places]
        own = () if game.family == "poker" else ("dealer",)
        owners = [*own, *(f"seat_{seat}" for seat in cloth.places)]
        return {
            "reason": [(number, _why(lang, VOID_REASONS[number], "dealer.void_0")) for number in reasons],
            "throw_reason": [
                (number, _why(lang, code, "dealer.throw_0"))
                for number, code in THROW_REASONS.items()
                if code in (game.null_throws or THROW_REASONS.values())
            ],
            "action": [(one, words.say(lang, f"dealer.act_{one}")) for one in game.actions or ACTIONS.values()],
            "ball": [(turn, words.say(lang, f"dealer.turn_{turn}")) for turn in (CLOCKWISE, ANTICLOCKWISE)],
            "rotor": [(turn, words.say(lang, f"dealer.turn_{turn}")) for turn in (ANTICLOCKWISE, CLOCKWISE)],
            "pocket": [(pocket, pocket) for pocket in _POCKETS[1:]],
            "pocket_or_none": [(pocket, pocket or "–") for pocket in _POCKETS],
            "seat": seats,
            "seat_or_none": [("", "–"), *seats],
            "hand": [(hand, str(hand)) for hand in range(1, 5)],
            "owner": [(owner, shapes.hand_words(owner, lang)) for owner in owners],
            "decks": [(0, "–"), *((decks, str(decks)) for decks in (1, 2, 4, 6, 8))],
            "level": [(0, "–"), *((level, str(level)) for level in range(1, 33))],
            "stacked": [(number, str(number)) for number in range(4)],
            "leaning": [(number, str(number)) for number in range(4)],
            "count": [(number, str(number)) for number in range(1, 5)],
            "fragments": [(number, str(number)) for number in range(4)],
            "rank": [("", "–"), *((rank, "10" if rank == "T" else rank) for rank in RANKS)],
            "suit": [(suit, sign) for suit, (sign, _) in shapes.SUITS.items()],
        }

    async def key(self, request: Request) -> Response:
        """Take one key; the answer follows after it is stored."""
        unit = self._unit(request)
        user = self._context.needs(request, "deal", unit.table)
        name: str = request.path_params["key"]
        if name not in {key.name for key in self.keys(unit.table)}:
            raise HTTPException(404)
        form: Mapping[str, str] = await self._context.form(request)
        lang = self._context.lang(request)
        scripted = "application/json" in request.headers.get("accept", "")
        try:
            form = in_minor_units(form, self._context.config.site.decimals)
            if name == "approve_machine":
                form = {**form, "by": user.name, "round": self._meant(unit.table, form)}
            happenings = happenings_of(name, form, supervisor=user.role == "supervisor")
            self._check(unit.table, happenings[0], laid=name == "showdown")
            meant = self._meant(unit.table, form) if name in DECIDES else ""
            press = Press(_id(form), name, happenings, _values(name, form), meant)
            pressed = unit.press(press, By(user.name, user.role), asyncio.get_running_loop().time())
        except (BadPress, Full, Other, BadStore, sqlite3.Error) as error:
            bad, status = refused(error)
            if scripted:
                return JSONResponse({"wrong": words.say(lang, bad)}, status)
            return RedirectResponse(f"/dealer/{unit.table}?wrong={bad}", 303)
        self._context.actions.collect()
        if scripted:
            return JSONResponse(self._shown(pressed, self._context.site.ruleset(unit.table), lang))
        return RedirectResponse(f"/dealer/{unit.table}?pressed={pressed.id}", 303)

    def _check(self, table: str, happening: fdl.Happening, *, laid: bool) -> None:
        """Check entries that the rules would refuse. Raises BadPress."""
        moment = self._moment(table)
        match happening:
            case SeatAction(seat, action, _, 0) if ACTIONS[action] == "insurance":
                if str(seat) in of_kind(BlackjackFacts, moment.detail).insurance:
                    raise BadPress("dealer.insurance_amount")
            case Corrected(hands) if laid and not {name for name, _ in hands} <= {*missing_hands(moment)}:
                raise BadPress("dealer.off_no_showdown")  # only a supervisor corrects another hand
            case _:
                pass

    async def stream(self, request: Request) -> Response:
        unit = self._unit(request)
        if len(self._changed[unit.table]) >= MOST_VIEWERS:
            raise HTTPException(503)
        supervisor = self._context.needs(request, "deal", unit.table).role == "supervisor"
        lang = self._context.lang(request)
        follow = self._follow(unit, lang, lambda: self._context.still(request), supervisor=supervisor)
        return StreamingResponse(follow, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def _follow(
        self, unit: Unit, lang: words.Lang, still: Callable[[], bool], *, supervisor: bool = False
    ) -> AsyncIterator[bytes]:
        """The state, now and at each change, with heartbeats in between."""
        changed = asyncio.Event()
        self._changed[unit.table].add(changed)
        try:
            while still():
                changed.clear()
                yield b"data: " + msgspec.json.encode(self._now(unit, lang, supervisor=supervisor)) + b"\n\n"
                await asyncio.sleep(PAUSE)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT):
                        await changed.wait()
            yield b"event: over\ndata: \n\n"
        finally:
            self._changed[unit.table].discard(changed)


def refused(error: Exception) -> tuple[str, int]:
    """The text of an error, and the status: 400 for an invalid press, 503 for one that can be repeated."""
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


def _value_in_words(values: Mapping[str, str], name: str, lang: words.Lang, money_of: Callable[[int], str]) -> str:
    """One value in words; "" where the field was unchanged. Unknown values are shown unchanged."""
    value = values[name]
    number = int(value) if value.isascii() and value.isdecimal() else None
    match name:
        case "seat":
            return words.say(lang, "round.seat", n=value)
        case "hand":
            return "" if value == "1" else value
        case "action":
            return words.value(lang, "action", value)
        case "bet":
            return _whole_bet(lang, value)
        case "amount" if number is not None:
            return money_of(number) if number else ""
        case "reason":
            return _why(lang, VOID_REASONS.get(number or 0, ""), "dealer.void_0")
        case "throw_reason":
            return _why(lang, THROW_REASONS.get(number or 0, ""), "dealer.throw_0") if number else ""
        case "stacked" | "leaning" | "fragments":
            return f"{words.say(lang, f'dealer.field_{name}')} {value}" if number else ""
        case "ball" | "rotor" if number in (CLOCKWISE, ANTICLOCKWISE):
            return words.say(lang, f"dealer.turn_{number}")
        case _:
            return value


def _place_words(lang: words.Lang, place: str) -> str:
    """A place of a family in the reader's language, else as the ruleset names it."""
    return words.catalog(lang).get(f"place.{place}", place)


def _whole_bet(lang: words.Lang, bet: str) -> str:
    """ "straight:17" with its family in the reader's language."""
    family, _, place = bet.partition(":")
    return f"{_bet_words(lang, family)} {_place_words(lang, place)}".rstrip()


def _bet_words(lang: words.Lang, family: str) -> str:
    """A family of bets in the reader's language, else by its name in the ruleset."""
    return words.catalog(lang).get(f"bet.{family}") or family.replace("_", " ")


class Payment(Struct, frozen=True):
    """One line of the payments: a bet with its stake and returned amount, or the sum of a seat or of all."""

    stake: int
    returned: int
    seat: int = 0
    bet: str = ""


def payments_of(result: Result, lang: words.Lang) -> tuple[Payment, ...]:
    """The payments by seat and hand, with sums; where an article orders them, in that order with one sum."""
    payout = payout_order(result)
    ordered = (
        payout.settlements if payout.law else sorted(payout.settlements, key=lambda one: (one.seat, max(one.hand, 1)))
    )
    found: list[Payment] = []
    for seat, group in groupby(ordered, key=lambda one: one.seat):
        lines = [Payment(one.stake, one.returned, seat, _bet_of_hand(lang, one.bet, one.hand)) for one in group]
        found += lines
        if len(lines) > 1 and not payout.law:
            found.append(_sum(lines, seat))
    return (*found, _sum([one for one in found if one.bet])) if len(ordered) > 1 else tuple(found)


def _sum(lines: Sequence[Payment], seat: int = 0) -> Payment:
    return Payment(sum(one.stake for one in lines), sum(one.returned for one in lines), seat)


def _bet_of_hand(lang: words.Lang, bet: str, hand: int) -> str:
    """A bet, with the hand it lies on where that is not the seat's first."""
    text = _whole_bet(lang, bet)
    return f"{text} · {words.say(lang, 'dealer.hand', n=hand)}" if hand > 1 else text


def _paid(view: TableView, paid: str) -> bool:
    """Whether the last round was paid, by the last events of the table, or else by `paid`, the round paid last."""
    for wire in reversed(view.lately):
        if wire.type == "round.paid":
            return True
        if wire.type in _PLAYED:
            return False
    return bool(view.results) and view.results[-1].round == paid


def _next(ruleset: str, moment: Moment, lang: words.Lang) -> str:
    """The next expected step, in words."""
    code, hands = next_step(ruleset, moment) if moment.phase != "unknown" else ("", ())
    return (
        words.say(lang, f"dealer.next_{code}", hands=", ".join(shapes.hand_words(hand, lang) for hand in hands))
        if code
        else ""
    )
