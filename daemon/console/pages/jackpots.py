"""The pages of jackpots: all pools at a glance, the books of one, and the orders of people.

Orders go to the process that keeps the books. It alone decides about them: the person who pays is not the
one who confirmed, the person who approves not the one who proposed, and no round is open. The page shows its answer.
"""

import asyncio
import hashlib
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec
from markupsafe import escape
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon.broker.session import BrokerLost
from daemon.config.model import Console as ConsoleSettings
from daemon.console.auth.access import User
from daemon.console.auth.users import may
from daemon.console.context import ConsoleContext
from daemon.console.live import Fragment, Gone, Viewer
from daemon.console.site.pools import OPEN, BookLine, Pools, PoolView
from daemon.words import words
from daemon.words.money import BadAmount, exact, minor_units
from protocols.contract.commands import Reply, Request as Asking, signed_bytes
from protocols.contract.jackpots import (
    Account,
    Adjust,
    Approve,
    BookEntry,
    Change,
    Confirm,
    ConfirmMany,
    Order,
    Pay,
    PayMany,
    PoolTerms,
    PoolWin,
    Price,
    Prize,
    Proposal,
    Propose,
    Reject,
    Reset,
    SetTerms,
    Transfer,
    ValueChange,
    Waits,
    Withdraw,
    jackpot_topic,
)

if TYPE_CHECKING:
    from daemon.journal.signing import Key

__all__ = ["Orders", "Outcome", "fragments", "routes"]

ANSWER_S = 10.0
"""Seconds for an answer of the jackpots process. The order expires then, so that it is not carried out later."""
REMEMBERED = 200
PAGE = 100
WINS_PAGE = 50
LONGEST_WIN = 200
SHOWN_ENTRIES = 25
SHOWN_ROUNDS = 100
CLOSED_WINS = 25
MOST_SHOWN_MACHINES = 200
BLANK_PRIZES = 3
MOST_PRIZES = 40
LONGEST_REASON = 200
STATE_OF = {"confirm-many": "pending", "pay-many": "confirmed"}
"""For each order of a page of wins, the state that its wins are in."""
ACCOUNTS: tuple[str, ...] = get_args(Account)
Status: TypeAlias = Literal["done", "refused", "failed", "unknown", "unsent"]


# ---- orders


class Outcome(Struct, frozen=True):
    """The outcome of an order. `unknown`: no answer came in time; `unsent`: the broker was not connected."""

    pool: str
    order: str
    status: Status
    text: str = ""


class Orders:
    """Orders under way, and the last outcomes for the page that asked."""

    def __init__(self, context: ConsoleContext, pools: Pools) -> None:
        """Begin without orders. Raises BadKey."""
        self._key = _order_key(context.config.console)
        self._context = context
        self._waiting: dict[str, asyncio.Future[Outcome]] = {}
        self._kept: OrderedDict[str, Outcome] = OrderedDict()
        pools.on_reply.append(self.heard)

    def heard(self, pool: str, reply: Reply) -> None:
        """Take an answer to an order, which may be late."""
        status: Status = reply.status if reply.status in ("done", "refused") else "failed"
        outcome = Outcome(pool, reply.command, status, reply.text)
        waiting = self._waiting.get(reply.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)
        elif (known := self._kept.get(reply.id)) is not None and known.status == "unknown" and known.pool == pool:
            self._kept[reply.id] = outcome

    def shown(self, pool: str, id_: str) -> Outcome | None:
        """The outcome of an order at this pool."""
        known = self._kept.get(id_)
        return known if known is not None and known.pool == pool else None

    async def send(self, pool: str, order: Order, id_: str) -> None:
        """Send an order and wait for its answer. While it is under way or done, the same id is not sent again."""
        if (under_way := self._waiting.get(id_)) is not None:
            await asyncio.wait([under_way])
            return
        if (known := self._kept.get(id_)) is not None and known.status == "done":
            return
        waiting: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = waiting
        name = str(order.__struct_config__.tag)
        outcome = Outcome(pool, name, "unknown")
        try:
            outcome = await self._sent(pool, name, order, id_, waiting)
        finally:
            del self._waiting[id_]
            if not waiting.done():
                waiting.set_result(outcome)
            self._kept[id_] = outcome
            if len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)

    async def _sent(self, pool: str, name: str, order: Order, id_: str, waiting: asyncio.Future[Outcome]) -> Outcome:
        context = self._context
        if not context.site.connected:
            return Outcome(pool, name, "unsent")
        args = msgspec.to_builtins(order)
        del args["order"]
        request = Asking(id_, context.now() + timedelta(seconds=ANSWER_S), msgspec.Raw(msgspec.json.encode(args)))
        topic = jackpot_topic(context.site.site, pool, f"cmd/{name}")
        if self._key is not None:
            signature = self._key.sign(signed_bytes(topic, request)).hex()
            request = msgspec.structs.replace(request, signature=signature)
        try:
            async with asyncio.timeout(ANSWER_S):
                await context.site.publish(topic, msgspec.json.encode(request))
                return await waiting
        except (TimeoutError, BrokerLost):  # the order may still have arrived
            return Outcome(pool, name, "unknown")


def _order_key(console: ConsoleSettings) -> "Key | None":
    """The key that signs orders. Raises BadKey."""
    if not console.order_key:
        return None
    from daemon.journal.signing import Key  # 8 MiB

    return Key.load(Path(console.order_key))


def order_id(drawn: str, user: User, pool: str, order: Order) -> str:
    """The id of an order, from the page, the person and the order, so that a double tap gives the same one."""
    said = "\n".join((drawn, user.kind, user.name, pool, msgspec.json.encode(order).decode()))
    return hashlib.sha256(said.encode(errors="replace")).hexdigest()[:32]


# ---- forms


class BadForm(Exception):
    """A form field is wrong. `key` is the text in the catalogs."""

    def __init__(self, key: str, **values: str) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def _read(given: Mapping[str, str], field: str, decimals: int, *, least: int = 0) -> int:
    """An amount in minor units. Raises BadForm."""
    try:
        amount = minor_units(given.get(field, ""), decimals)
    except BadAmount as error:
        raise BadForm("jackpots.bad_amount", text=str(error)[:40] or "–") from error
    if amount < least:
        raise BadForm("jackpots.bad_amount", text=given[field][:40])
    return amount


def _reason(given: Mapping[str, str], field: str = "reason") -> str:
    text = given.get(field, "").strip()
    if not 1 <= len(text) <= LONGEST_REASON:
        raise BadForm(f"jackpots.bad_{field}")
    return text


def _seats(text: str) -> tuple[int, ...]:
    parts = [part for part in re.split(r"[\s,;、，]+", text.strip()) if part]
    if not all(re.fullmatch(r"[1-9][0-9]?", part) for part in parts):
        raise BadForm("jackpots.bad_seats")
    return tuple(map(int, parts))


def _chosen(given: Mapping[str, str]) -> tuple[str, ...]:
    """The wins that were ticked. Raises BadForm."""
    wins = tuple(dict.fromkeys(value for field, value in given.items() if field.startswith("win-") and value))
    if not wins or len(wins) > WINS_PAGE or any(len(one) > LONGEST_WIN for one in wins):
        raise BadForm("jackpots.bad_chosen", n=str(WINS_PAGE))
    return wins


def _terms(given: Mapping[str, str], decimals: int) -> PoolTerms:
    """New terms from all fields of the form. Raises BadForm."""
    prizes = {}
    for n in range(MOST_PRIZES):
        name = given.get(f"prize-{n}", "").strip()
        if not name:
            continue
        if name in prizes:
            raise BadForm("jackpots.bad_twice", name=name[:64])
        fixed = _read(given, f"fixed-{n}", decimals) if given.get(f"fixed-{n}", "").strip() else 0
        prizes[name] = {
            "fixed": fixed,
            "pays": given.get(f"pays-{n}", "fixed"),
            "share": given.get(f"share-{n}") or "0",
        }
    window = given.get("simultaneous_s", "").strip()
    said = {
        "seed": _read(given, "seed", decimals),
        "visible": given.get("visible", "").strip(),
        "hidden": given.get("hidden", "").strip() or "0",
        "limit": _read(given, "limit", decimals),
        "reseed": given.get("reseed", ""),
        "odd": given.get("odd", ""),
        "simultaneous_s": int(window) if re.fullmatch("[0-9]{1,2}", window) else window,
        "simultaneous": given.get("simultaneous", ""),
        "table_limit": _read(given, "table_limit", decimals) if given.get("table_limit", "").strip() else 0,
        "prizes": prizes,
    }
    try:
        return msgspec.convert(said, PoolTerms)
    except msgspec.ValidationError as error:
        text = str(error)
        field = (re.search(r"\$\.(\w+)", text) or re.search(r"`(\w+)`", text) or [text, "?"])[1]
        key = "jackpots.bad_rates" if "more than the bet" in text else "jackpots.bad_field"
        key = "jackpots.bad_limit" if "could not begin" in text else key
        raise BadForm(key, **({"field": field} if key == "jackpots.bad_field" else {})) from error


def _order(name: str, given: Mapping[str, str], person: str, decimals: int, others: Collection[str]) -> Order:
    """The order of a form; `others`: pools that can take this one's balance. Raises BadForm."""
    which = given.get("win", "")[:200] or "-"
    match name:
        case "confirm":
            return Confirm(person, which, _seats(given.get("seats", "")))
        case "pay":
            return Pay(person, which)
        case "confirm-many" | "pay-many":
            many = ConfirmMany if name == "confirm-many" else PayMany
            return many(person, _chosen(given))
        case "approve":
            return Approve(person, given.get("proposal", "")[:200] or "-")
        case "withdraw":
            return Withdraw(person, given.get("proposal", "")[:200] or "-")
        case "adjust":
            account = next((one for one in get_args(Account) if one == given.get("account")), None)
            if account is None:
                raise BadForm("jackpots.bad_field", field="account")
            amount = _read(given, "amount", decimals, least=-(2**53))
            if not amount:
                raise BadForm("jackpots.bad_amount", text=given["amount"][:40])
            return Propose(person, Adjust(account, amount, _reason(given)))
        case "reset":
            return Propose(person, Reset(_reason(given)))
        case "set-terms":
            return Propose(person, SetTerms(_terms(given, decimals), _reason(given)))
        case "reject":
            return Propose(person, Reject(which, _reason(given)))
        case "price":
            return Propose(person, Price(which, _read(given, "amount", decimals), _reason(given)))
        case "transfer":
            if given.get("to") not in others:
                raise BadForm("jackpots.bad_field", field="to")
            return Propose(person, Transfer(given["to"], _reason(given), _reason(given, "authority")))
        case _:
            raise HTTPException(404)


# ---- views


class Row(Struct, frozen=True):
    """A line of the books: an account with its payments into the pool, or its balance, and a fraction of a minor
    unit.
    """

    account: str
    win: str = ""
    paid_in: int | None = None
    holds: int | None = None
    fraction: str = ""


class Difference(Struct, frozen=True):
    """A value before and after. `kind`: its format."""

    label: str
    old: Any
    new: Any
    kind: Literal["money", "text", "word", "prize"] = "text"
    name: str = ""

    @property
    def changed(self) -> bool:
        """Whether the values differ."""
        return bool(self.old != self.new)


def _rows(balances: Mapping[str, int], unit: int) -> tuple[list[Row], Row]:
    """The accounts, and their totals: the payments equal the balances."""
    order = ("players", "house", "visible", "hidden", "overflow", "margin", "paid")
    names = [*order, *sorted(name for name in balances if name not in order)]
    rows = []
    for name in names:
        value = balances.get(name, 0)
        amount, fraction = exact(abs(value), unit)
        account, _, win = name.partition(":")
        paid_in = value < 0 or (not value and name in ("players", "house"))
        sides = {"paid_in": amount} if paid_in else {"holds": amount}
        rows.append(Row(account, win, fraction=fraction, **sides))
    sums = [sum(abs(one) for one in balances.values() if (one < 0) is negative) for negative in (True, False)]
    (paid, fraction), (held, _) = exact(sums[0], unit), exact(sums[1], unit)
    return rows, Row("total", "", paid, held, fraction)


def _terms_rows(old: PoolTerms | None, new: PoolTerms) -> list[Difference]:
    """Each term, present and proposed."""
    was = old or new
    rows = [
        Difference("seed", was.seed, new.seed, "money"),
        Difference("visible", was.visible, new.visible),
        Difference("hidden", was.hidden, new.hidden),
        Difference("limit", was.limit or None, new.limit or None, "money"),
        Difference("reseed", was.reseed, new.reseed, "word"),
        Difference("odd", was.odd, new.odd, "word"),
        Difference("simultaneous_s", str(was.simultaneous_s), str(new.simultaneous_s)),
        Difference("simultaneous", was.simultaneous, new.simultaneous, "word"),
        Difference("table_limit", was.table_limit or None, new.table_limit or None, "money"),
    ]
    names = [*was.prizes, *(name for name in new.prizes if name not in was.prizes)]
    return rows + [Difference("prize", was.prizes.get(one), new.prizes.get(one), "prize", one) for one in names]


def _transfer_rows(view: PoolView, other: PoolView | None, to: str) -> list[Difference]:
    """The accounts of both pools before and after a transfer of everything from `view` to `other`."""
    moved = sum((view.exact(account) for account in ACCOUNTS), Fraction())
    given: dict[str, Fraction] = {one: -view.exact(one) for one in ACCOUNTS} | {"transferred": moved}
    taken = {"visible": moved, "overflow": Fraction(), "transferred": -moved}
    limit = other.books.terms.limit if other is not None and other.books is not None else 0
    if other is not None and limit and (over := other.exact("visible") + moved - limit) > 0:
        taken |= {"visible": moved - over, "overflow": over}
    rows = []
    for name, pool, moves in ((view.name, view, given), (to, other, taken)):
        for account, amount in moves.items():
            if amount and pool is not None:
                held = pool.exact(account)
                rows.append(Difference(f"account_{account}", int(held), int(held + amount), "money", name))
    return rows


def _differences(view: PoolView, change: Change, pools: Pools) -> list[Difference]:
    """The effect of a change on the present pool."""
    books, shown = view.books, view.held("visible")
    match change:
        case Adjust(account=account, amount=amount):
            held = view.held(account)
            return [Difference(f"account_{account}", held, held + amount, "money")]
        case Reset():
            seed = books.terms.seed if books is not None else 0
            over = view.held("overflow")
            above = max(shown - seed, 0)
            return [
                Difference("account_visible", shown, seed, "money"),
                Difference("account_overflow", over, over + above, "money"),
            ]
        case SetTerms(terms=terms):
            return [one for one in _terms_rows(books.terms if books is not None else None, terms) if one.changed]
        case Reject(win=name):
            win = view.win(name)
            return [Difference("win_state", win.state if win else "?", "reversed", "word", name)]
        case Price(win=name, amount=amount):
            win = view.win(name)
            return [Difference("win_amount", win.amount if win else None, amount, "money", name)]
        case Transfer(to=to):
            return _transfer_rows(view, pools.get(to), to)


def _of_entry(entry: BookEntry, kind: str) -> list[Difference]:
    """Old and new values of an entry that two people made."""
    change = entry.change
    if kind == "changed" and entry.old is not None and isinstance(change, SetTerms):
        return [one for one in _terms_rows(entry.old, change.terms) if one.changed]
    if entry.values:
        return [_of_value(one) for one in entry.values]
    if kind not in ("adjusted", "reset", "transferred") or not entry.people:
        return []
    rows = []
    for account in (*ACCOUNTS, "transferred"):
        after, moved = int(entry.after.get(account, "0")), int(entry.postings.get(account, "0"))
        if moved:
            old, new = (int(Fraction(one, entry.unit)) for one in (after - moved, after))
            rows.append(Difference(f"account_{account}", old, new, "money"))
    return rows


AMOUNTS = ("seed", "limit", "table_limit", "win_amount")
WORDS = ("reseed", "odd", "simultaneous", "win_state")


def _of_value(value: ValueChange) -> Difference:
    """The old and the new value as the page shows them; values of a later version are shown unchanged."""
    what, old, new = value.what, value.old, value.new
    kind, _, name = what.partition(":")
    try:
        if kind == "prize":
            return Difference("prize", _prize_of(old), _prize_of(new), "prize", name)
        if what in AMOUNTS or what in (*ACCOUNTS, "transferred"):
            label = what if what in AMOUNTS else f"account_{what}"
            return Difference(label, int(Fraction(old)), int(Fraction(new)), "money")
    except (ValueError, ZeroDivisionError):  # a ValueError, too: a number of thousands of digits
        pass
    return Difference(what.removesuffix("_rate"), old, new, "word" if what in WORDS else "text")


def _prize_of(text: str) -> Prize | None:
    """Raises ValueError."""
    pays, _, rest = text.partition(":")
    fixed, _, share = rest.partition(":")
    match pays:
        case "":
            return None
        case "pool":
            return Prize(0, "pool", share or "0")
        case "fixed":
            return Prize(int(fixed))
        case "larger":
            return Prize(int(fixed), "larger_of_fixed_and_share", share)
        case _:
            raise ValueError(text)


class EntryLine(Struct, frozen=True):
    """An entry for the table: its amounts, in whole minor units with the fraction."""

    line: BookLine
    moves: tuple[tuple[str, str, int, str], ...]
    differences: tuple[Difference, ...]


def _entry_line(line: BookLine) -> EntryLine:
    moves = []
    for name, units in line.entry.postings.items():
        account, _, win = name.partition(":")
        moves.append((account, win, *exact(int(units), line.entry.unit)))
    return EntryLine(line, tuple(moves), tuple(_of_entry(line.entry, line.type)))


# ---- fragments


def fragments(context: ConsoleContext, pools: Pools) -> tuple[Fragment, ...]:
    """Parts of the pages that follow the pools."""

    def of(
        kind: str, values: Callable[[PoolView, Viewer], dict[str, Any]], *keys: str, personal: bool = False
    ) -> Fragment:
        """A fragment. `personal`: it depends on whether this person may decide now."""

        def render(pool: str, viewer: Viewer) -> str:
            if not may(viewer.role, "books"):
                raise KeyError(pool)
            view = pools.get(pool)
            if view is None:
                raise Gone(pool)
            return context.render(
                f"_{kind}.html", viewer.lang, pool=view, **_common(context, view), **values(view, viewer)
            )

        def follows(pool: str) -> tuple[str, ...]:
            view = pools.get(pool) if personal else None
            tables = view.tables if view is not None else ()
            return (*(f"{key}/{pool}" for key in keys), *(f"table/{table}" for table in tables), "broker", "present")

        return Fragment(kind, follows, render, personal=personal)

    def none(_view: PoolView, _viewer: Viewer) -> dict[str, Any]:
        return {}

    def books(view: PoolView, _viewer: Viewer) -> dict[str, Any]:
        rows, total = _rows(view.balances, view.unit)
        return {"rows": rows, "total": total, "sum": sum(view.balances.values())}

    def wins(view: PoolView, viewer: Viewer) -> dict[str, Any]:
        return _wins_values(context, view, viewer)

    def changes(view: PoolView, viewer: Viewer) -> dict[str, Any]:
        return _changes_values(context, pools, view, viewer)

    def terms(view: PoolView, _viewer: Viewer) -> dict[str, Any]:
        return {"terms": _terms_rows(None, view.books.terms) if view.books is not None else []}

    def rounds(view: PoolView, _viewer: Viewer) -> dict[str, Any]:
        return {"rounds": list(reversed(view.rounds.values()))[:SHOWN_ROUNDS]}

    def entries(view: PoolView, viewer: Viewer) -> dict[str, Any]:
        lines = [_entry_line(line) for line in list(view.lines)[: -SHOWN_ENTRIES - 1 : -1]]
        return {"entries": lines, "may_export": may(viewer.role, "export")}

    return (
        _ready(context, pools),
        of("pooltile", none, "pool", "poolentries", "poolwins"),
        of("poolhead", none, "pool", "poolentries"),
        of("poolbooks", books, "poolentries"),
        of("poolwins", wins, "poolwins", personal=True),
        of("poolchanges", changes, "poolwins", personal=True),
        of("poolterms", terms, "poolwins"),
        of("poolrounds", rounds, "poolentries"),
        of("poolentries", entries, "poolentries"),
    )


def _ready(context: ConsoleContext, pools: Pools) -> Fragment:
    """Whether wins of a pool and some tables can be paid now: when it changes, the page is loaded again."""

    def tables(argument: str) -> list[str]:
        return argument.partition("/")[2].split(",")[:WINS_PAGE]

    def follows(argument: str) -> tuple[str, ...]:
        pool = argument.partition("/")[0]
        return (f"poolwins/{pool}", *(f"table/{table}" for table in tables(argument)), "broker", "present")

    def render(argument: str, viewer: Viewer) -> str:
        view = pools.get(argument.partition("/")[0])
        if view is None or not may(viewer.role, "books"):
            raise KeyError(argument)
        waits = [f"{win.id}={win.state}" for win in view.open_wins]
        now = [str(_is_away(context)), str(view.waiting), *_open_rounds(context, tables(argument)), *waits]
        name, known = escape(argument), escape(" ".join(now))
        return f'<i hidden data-live="poolready/{name}" data-reload="{known}"></i>'

    return Fragment("poolready", follows, render)


def _wins_values(context: ConsoleContext, view: PoolView, viewer: Viewer) -> dict[str, Any]:
    known = view.books.wins if view.books is not None else ()
    return {
        "open": view.open_wins,
        "over": [one for one in reversed(known) if one.state not in OPEN][:CLOSED_WINS],
        "may_settle": may(viewer.role, "settle"),
        "drawn": secrets.token_hex(12),
        "why_not": lambda win: _why_not_pay(context, win, viewer),
    }


def _changes_values(context: ConsoleContext, pools: Pools, view: PoolView, viewer: Viewer) -> dict[str, Any]:
    proposals = view.level.proposals if view.level is not None else ()
    return {
        "waiting": [(one, _differences(view, one.change, pools)) for one in proposals],
        "may_settle": may(viewer.role, "settle"),
        "drawn": secrets.token_hex(12),
        "why_not": lambda proposal: _why_not_approve(context, view, proposal, viewer),
    }


def _why_not_pay(context: ConsoleContext, win: PoolWin, viewer: Viewer) -> str:
    """Why this person's payment or confirmation would be refused now; "" where it would not."""
    if _is_away(context):
        return words.say(viewer.lang, "jackpots.why_away")
    if win.state == "confirmed" and win.confirmed_by == viewer.name:
        return words.say(viewer.lang, "jackpots.why_same_pays")
    rounds = _open_rounds(context, (win.table,)) if win.state == "confirmed" else []
    return words.say(viewer.lang, "jackpots.why_open_pay", round=rounds[0]) if rounds else ""


def _why_not_approve(context: ConsoleContext, view: PoolView, one: Proposal, viewer: Viewer) -> str:
    """Why this person's approval would be refused now; "" where it would not."""
    if _is_away(context):
        return words.say(viewer.lang, "jackpots.why_away")
    if one.person == viewer.name:
        return words.say(viewer.lang, "jackpots.why_same_approves")
    rounds = _open_rounds(context, view.tables) if not isinstance(one.change, (Reject, Price)) else []
    return words.say(viewer.lang, "jackpots.why_open_change", round=", ".join(rounds[:3])) if rounds else ""


def _is_away(context: ConsoleContext) -> bool:
    """Whether the process that keeps the books is known to be offline, or to hang."""
    keeper = context.site.edges.get(context.config.jackpots.name)
    return keeper is not None and keeper.current is not True


def _open_rounds(context: ConsoleContext, tables: Collection[str]) -> list[str]:
    """The rounds that these tables play now, as far as the console received them."""
    views = [context.site.tables[table] for table in tables if table in context.site.tables]
    return [
        view.round
        for view in views
        if view.round
        and view.phase not in ("-", "idle", "resolved", "paying", "ended")
        and all(one.round != view.round for one in view.results)
    ]


def _common(context: ConsoleContext, view: PoolView) -> dict[str, Any]:
    """The format of this pool's amounts, and their certainty."""
    level = view.level
    keeper = context.site.edges.get(context.config.jackpots.name)
    alive = keeper.current if keeper is not None and context.site.connected else None

    def lamp(place: str) -> str:
        table, _, device = place.partition("/")
        known = context.site.devices.get((table, device))
        return context.site.lamp(known) if known is not None else "unknown"

    machines = view.books.machines[:MOST_SHOWN_MACHINES] if view.books is not None else ()
    return {
        "decimals": level.decimals if level is not None else 2,
        "currency": level.currency if level is not None else "",
        "alive": alive,
        "signs": [(sign, lamp(sign.place)) for sign in view.signs.values()],
        "machines": [(place, lamp(place)) for place in machines],
        "balanced": None if view.last is None else not view.fault,
    }


# ---- pages


def routes(context: ConsoleContext, pools: Pools, orders: Orders) -> list[Route]:
    """All pools, one pool, its entries, and the orders."""
    pages = _Pages(context, pools, orders)
    return [
        Route("/jackpots", pages.all),
        Route("/jackpots/{pool}", pages.pool),
        Route("/jackpots/{pool}/entries", pages.entries),
        Route("/jackpots/{pool}/wins", pages.wins),
        Route("/jackpots/{pool}/order/{order}", pages.order, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, context: ConsoleContext, pools: Pools, orders: Orders) -> None:
        self.context = context
        self.pools = pools
        self.orders = orders

    def _pool(self, request: Request, right: Literal["books", "settle"] = "books") -> tuple[PoolView, User]:
        """The pool of the page. Raises Redirect to the login, 403, 404."""
        user = self.context.needs(request, right)
        view = self.pools.get(request.path_params["pool"])
        if view is None:
            raise HTTPException(404)
        return view, user

    async def all(self, request: Request) -> Response:
        self.context.needs(request, "books")
        return self.context.page(request, "jackpots.html", pools=[view.name for view in self.pools])

    async def pool(self, request: Request) -> Response:
        view, _ = self._pool(request)
        return self._page(request, view)

    def _page(
        self, request: Request, view: PoolView, error: str = "", kept: Mapping[str, str] | None = None
    ) -> Response:
        """`kept`: the fields of a refused form."""
        books = view.books
        return self.context.page(
            request,
            "jackpot.html",
            400 if error else 200,
            pool=view,
            terms=books.terms if books is not None else None,
            prizes=_prize_fields(books.terms) if books is not None else [],
            accounts=ACCOUNTS,
            others=self._others(view),
            plain=lambda minor: _plain(minor, view.level.decimals if view.level is not None else 2),
            drawn=secrets.token_hex(12),
            outcome=self.orders.shown(view.name, request.query_params.get("order", "")[:64]),
            error=error,
            kept=kept or {},
            **_common(self.context, view),
        )

    def _others(self, view: PoolView) -> list[str]:
        """The pools of the same currency that can take this one's balance."""
        if (level := view.level) is None:
            return []
        of = level.currency, level.decimals
        levels = [(one.name, one.level) for one in self.pools if one.name != view.name]
        return [name for name, one in levels if one is not None and (one.currency, one.decimals) == of]

    async def entries(self, request: Request) -> Response:
        view, _ = self._pool(request)
        newest = view.last.seq if view.last is not None else 0
        before = _number(request.query_params.get("before", "")) or newest + 1
        before = min(before, newest + 1)
        first = max(before - PAGE, 1)
        found = await self.pools.recall(view, first, before - 1) if before > 1 else []
        return self.context.page(
            request,
            "jackpot_entries.html",
            pool=view,
            entries=[_entry_line(line) for line in found],
            missing=before - first - len(found),
            older=first if first > 1 else None,
            newer=min(before + PAGE, newest + 1) if before <= newest else None,
            **_common(self.context, view),
        )

    async def wins(self, request: Request) -> Response:
        view, _ = self._pool(request)
        return await self._wins_page(request, view, request.query_params.get("state", ""))

    async def _wins_page(self, request: Request, view: PoolView, said: str, error: str = "") -> Response:
        """Wins that wait in one state, to be confirmed or paid together."""
        state: Waits = "confirmed" if said == "confirmed" else "pending"
        first = (_number(request.query_params.get("first", "")) or 0) // WINS_PAGE * WINS_PAGE
        found = await self.pools.wins(view, first, WINS_PAGE, state)
        total = found.total if found is not None else 0
        user, lang = self.context.user(request), self.context.lang(request)
        viewer = Viewer(lang, user.role, user.tables, user.name) if user else Viewer(lang, "")
        return self.context.page(
            request,
            "jackpot_wins.html",
            400 if error else 200,
            pool=view,
            state=state,
            found=found,
            first=first,
            before=max(first - WINS_PAGE, 0) if first else None,
            behind=first + WINS_PAGE if first + WINS_PAGE < total else None,
            all_chosen=bool(request.query_params.get("all")),
            why_not=lambda win: _why_not_pay(self.context, win, viewer),
            drawn=secrets.token_hex(12),
            outcome=self.orders.shown(view.name, request.query_params.get("order", "")[:64]),
            error=error,
            **_common(self.context, view),
        )

    async def order(self, request: Request) -> Response:
        view, user = self._pool(request, "settle")
        name: str = request.path_params["order"]
        given = await self.context.form(request)
        drawn = given.get("id", "")
        if view.level is None or not re.fullmatch(r"[0-9a-f]{16,64}", drawn):
            raise HTTPException(400)
        try:
            order = _order(name, given, user.name, view.level.decimals, self._others(view))
        except BadForm as error:
            lang = self.context.lang(request)
            values = dict(error.values)
            if "field" in values:
                values["field"] = words.say(lang, f"jackpots.term_{values['field']}")
            text = words.say(lang, error.key, **values)
            if name in STATE_OF:
                return await self._wins_page(request, view, STATE_OF[name], text)
            return self._page(request, view, text, {**given, "form": name})
        if not isinstance(order, Withdraw) and (answer := self._unproven(request, user, given, view)):
            return answer
        id_ = order_id(drawn, user, view.name, order)
        detail = {"id": id_, **msgspec.to_builtins(order), **_before(view, order)}
        self.context.actions.note(user.name, user.role, f"jackpot.{name}", f"jackpot:{view.name}", detail)
        await self.orders.send(view.name, order, id_)
        place = f"/wins?state={STATE_OF[name]}&" if name in STATE_OF else "?"
        return RedirectResponse(f"/jackpots/{view.name}{place}order={id_}", 303)

    def _unproven(self, request: Request, user: User, given: Mapping[str, str], view: PoolView) -> Response | None:
        """The page with the reason why this person may not decide yet; None: they may."""
        found = self.context.proof(request, user, given, f"/jackpots/{view.name}")
        if isinstance(found, Response):
            return found
        return self._page(request, view, words.say(self.context.lang(request), found)) if found else None


def _before(view: PoolView, order: Order) -> dict[str, Any]:
    """The value that a proposed change would replace, for the journal of actions."""
    match order:
        case Propose(change=SetTerms()) if view.books is not None:
            return {"old": msgspec.to_builtins(view.books.terms)}
        case Propose(change=Adjust(account=account)):
            return {"old": view.held(account)}
        case Propose(change=Reset()):
            return {"old": view.held("visible")}
        case Propose(change=Transfer()):
            return {"old": {account: view.held(account) for account in ACCOUNTS}}
        case _:
            return {}


def _prize_fields(terms: PoolTerms) -> list[tuple[str, Prize | None]]:
    """The prizes for a form, and some lines for new ones."""
    known: list[tuple[str, Prize | None]] = list(terms.prizes.items())
    return (known + [("", None)] * BLANK_PRIZES)[:MOST_PRIZES]


def _plain(minor: int, decimals: int) -> str:
    """An amount as a person may write it into a form."""
    whole, part = divmod(minor, 10**decimals)
    return f"{whole}.{part:0{decimals}}" if decimals else str(whole)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
