"""What people do at the console, done in a real browser with presses and keystrokes counted.

`make tasks` prints who did what in how many steps and seconds, and fails where a task takes more than its limit. A
press is a click on what is live, or a choice from a list; a key is a character typed. Broker, edge, rules and console
of the dealer's tables are real, with the devices reported from here; the pit of 60 tables is filled by hand.
"""

import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from dealer_floor import DealerFloor, table_of
from floor import Browser, Served, browser, opened
from full_pit import FullPit, full_pit, sized
from msgspec import Struct

from protocols.contract.events import CardDrawn, EventsMissed

DESK, WALL, TABLET = (1280, 800), (1920, 1080), (1024, 768)
WHOLE = """
return [...document.querySelectorAll('.tile')].filter((one) => {
  const box = one.getBoundingClientRect();
  const inside = box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
  return !one.hidden && inside && box.width >= 100;
}).length
"""
# Whether what is pressed leads to another page: a link, or a form that no script sends.
LEADS = """
const one = [...document.querySelectorAll(arguments[0])].find((one) => one.innerText.includes(arguments[1]));
return one.matches('a[href]:not([href^="#"])')
  || one.type === 'submit' && one.form !== null && one.form.dataset.key === undefined;
"""
LINE = "[data-live='alerts/worst'] .line1"
FANTAN, BLACKJACK = "macau.fantan", "macau.blackjack"


class Done(Struct, frozen=True):
    """A task as it was done. `most`: presses and keys that are allowed; `pages`: how many were opened on the way."""

    who: str
    what: str
    presses: int
    keys: int
    pages: int
    most: tuple[int, int]
    seconds: float
    steps: tuple[str, ...]

    @property
    def too_much(self) -> bool:
        """Whether it took more than is allowed."""
        return self.presses > self.most[0] or self.keys > self.most[1]


class Hand:
    """Somebody at a browser. Every press and every key is counted."""

    def __init__(self, page: Browser, floor: Served, who: str, at: str, size: tuple[int, int] = DESK) -> None:
        self.page = page
        page.floor = floor
        sized(page, size)
        page.come_in(who)
        page.go(at)
        page.until("main > *")
        self.presses = self.keys = self.pages = 0
        self.steps: list[str] = []

    @property
    def where(self) -> str:
        """The path of the page."""
        return self.page.driver.current_url.removeprefix(self.page.floor.url)

    def press(self, css: str, words: str = "", *, said: str = "", sure: bool = False) -> None:
        """Press what is there and live; scrolling to it is no press. `sure`: a question follows, and is answered."""
        before = self.where
        self.page.until(css, words)
        with self.page.left() if self.page.driver.execute_script(LEADS, css, words) else nullcontext():
            if sure:
                self.page.ask(css).accept()
            else:
                self.page.tap(css, words)
        self.pages += before != self.where
        self.presses += 1 + sure
        self.steps += [said or words or css, *["OK"] * sure]

    def write(self, css: str, text: str) -> None:
        """Write into a field from its beginning; to go there is a press."""
        self.page.write(css, text)
        self.presses += 1
        self.keys += len(text)
        self.steps.append("“" + text.replace("\t", " ") + "”")

    def choose(self, css: str, value: str) -> None:
        """Choose from a list: open it, and the choice."""
        self.page.choose(css, value)
        self.presses += 2
        self.steps.append(value)


class Book:
    """The tasks that were done."""

    def __init__(self) -> None:
        self.done: list[Done] = []

    @contextmanager
    def task(self, hand: Hand, who: str, what: str, presses: int, keys: int = 0) -> Iterator[None]:
        """One task of at most so many presses and keys."""
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        most = (presses, keys)
        self.done.append(Done(who, what, hand.presses, hand.keys, hand.pages, most, took, tuple(hand.steps)))

    def text(self) -> str:
        """A table of all."""
        lines = [f"{'who':<11} {'task':<45} {'presses':>9} {'keys':>7} {'pages':>5} {'s':>6}  steps"]
        for one in self.done:
            presses, keys = f"{one.presses}/{one.most[0]}", f"{one.keys}/{one.most[1]}"
            lines.append(
                f"{one.who:<11} {one.what:<45} {presses:>9} {keys:>7} {one.pages:>5} {one.seconds:>6.1f}  "
                f"{' · '.join(one.steps)}{'  TOO MUCH' if one.too_much else ''}"
            )
        return "\n".join(lines)


# ---- a technician and a wall, in a pit of 60 tables


def walls(book: Book, page: Browser, pit: FullPit, small: FullPit) -> None:
    """Tables that stand whole on a screen without scrolling."""
    for one, size, tables in ((pit, WALL, 60), (small, TABLET, 24)):
        hand = Hand(page, one, "sam", "/", size)
        with book.task(hand, "wall" if size == WALL else "tablet", f"sees {tables} tables at {size[0]}x{size[1]}", 0):
            page.when(lambda tables=tables: int(page.driver.execute_script(WHOLE)) == tables)  # type: ignore[misc]


def technician(book: Book, page: Browser, pit: FullPit) -> None:
    """A fault, from its first sight to its end, without leaving the pit."""
    hand = Hand(page, pit, "tess", "/")
    pit.do(lambda: pit.fault("stud-03", "shuffler-1"))
    with book.task(hand, "technician", "from fault to acknowledged", 3):
        page.until(LINE, "wrong number of cards")
        hand.press(f"{LINE} > form button", "Take it")
        page.until(f"{LINE}.mine .when", "you · taken")
        assert hand.where == "/"
    hand = Hand(page, pit, "tess", "/")
    with book.task(hand, "technician", "finds the remedy", 1):
        hand.press(f"{LINE} summary", "stud-03", said="the line")
        page.until(f"{LINE} details[open] .more", "count it by hand")
    hand = Hand(page, pit, "tess", "/")
    with book.task(hand, "technician", "on the way, at the table, done", 4):
        for button, stage in (("On the way", "on the way"), ("At the table", "at the table"), ("Done", "done")):
            hand.press(f"{LINE} > form button", button)
            page.until(f"{LINE}.mine .when", f"you · {stage}")
        assert hand.where == "/"
    pit.do(lambda: pit.mend("stud-03", "shuffler-1"))
    pit.do(lambda: pit.fault("rou-05", "lamps-1"))
    hand = Hand(page, pit, "tess", "/")
    why = "the lamp is changed tonight"
    with book.task(hand, "technician", "silences a fault with reason and end", 6, len(why)):
        hand.press(f"{LINE} > form button", "Take it")
        page.until(f"{LINE}.mine .when", "you · taken")
        if not page.there(f"{LINE} details[open]"):
            hand.press(f"{LINE} summary", "rou-05", said="the line")
        page.until(f"{LINE} form.hush")
        hand.write(f"{LINE} form.hush [name=why]", why)
        hand.press(f"{LINE} form.hush button", said="Silence")
        page.until(f"{LINE}.silenced .when", "silenced until")
    pit.do(lambda: pit.mend("rou-05", "lamps-1"))


def manager_of_devices(book: Book, page: Browser, pit: FullPit) -> None:
    """The devices that cost most rounds, and the computer that needs somebody."""
    for _ in range(2):  # after a pause the first look begins a watched time, and records none
        pit.do(pit.console.house.watched.look)
    pit.do(lambda: pit.fault("stud-03", "shuffler-1"))
    hand = Hand(page, pit, "mona", "/")
    with book.task(hand, "manager", "finds the worst device of the month, by model", 5):
        hand.press("header nav a[href='/floor']", said="Floor")
        hand.press("main a[href='/devices']", "Devices")
        page.until("main .card:first-of-type tbody th", "stud-03 · shuffler-1")
        hand.choose("[name=by]", "model")
        hand.press("form[action='/devices'] button.main", said="Display")
        page.until("main .card:last-of-type tbody th", "Batch shuffler, FDL")
    pit.do(lambda: pit.mend("stud-03", "shuffler-1"))
    pit.do(lambda: pit.console.edge("edge-8", online=False))
    hand = Hand(page, pit, "mona", "/")
    with book.task(hand, "manager", "finds the computer that is offline", 2):
        hand.press(".edges summary", said="computers")
        hand.press(".edges a[href='/fleet']", "All computers")
        page.until("[data-live='fleet'] tbody tr:first-child th", "edge-8")
    pit.do(lambda: pit.console.edge("edge-8"))


# ---- dealer, supervisor and inspector, at tables where all is real


def entered(hand: Hand, key: str, css: str = "button", said: str = "") -> None:
    """A key of the dealer's page, until the edge keeps it."""
    form = f'form[data-key="{key}"]'
    hand.press(f"{form} {css}", said=said or key)
    kept(hand, form)


def kept(hand: Hand, form: str) -> None:
    page = hand.page
    page.when(lambda: page.text(f"{form} [data-said]") in ("recorded", "enter it once more"))
    page.when(lambda: not page.there(f"{form}[data-busy]"))


def phase(floor: DealerFloor, page: Browser, ruleset: str, *wanted: str) -> None:
    """Wait until the table is there."""
    page.when(lambda: floor.view(table_of(ruleset)).phase in wanted)


def due(floor: DealerFloor, kind: str) -> dict[str, Any]:
    """What the table of blackjack waits for, if it is of that kind."""
    found: dict[str, Any] = floor.view(table_of(BLACKJACK)).detail.get("due", {})
    return found if found.get("kind") == kind else {}


def deal(floor: DealerFloor, page: Browser, **hands: list[str]) -> None:
    """The shoe gives the cards that are due."""
    while card := due(floor, "card"):
        name = card["hand"].replace(".1", "")
        before = floor.view(table_of(BLACKJACK)).detail
        floor.report(
            table_of(BLACKJACK), "shoe-1", CardDrawn(hands[f"seat_{name}" if name.isdecimal() else name].pop(0))
        )
        page.when(partial(lambda old: bool(floor.view(table_of(BLACKJACK)).detail != old), before))


def fantan(book: Book, page: Browser, floor: DealerFloor) -> None:
    """A round without bets on the page, as the most tables have it."""
    hand = Hand(page, floor, "dora", f"/dealer/{table_of(FANTAN)}")
    page.until("[data-there]:not([hidden])")
    with book.task(hand, "dealer", "a round of fantan, by keys", 6):
        entered(hand, "buttons_separated")
        phase(floor, page, FANTAN, "covered")
        entered(hand, "bets_opened")
        phase(floor, page, FANTAN, "betting")
        entered(hand, "bell")
        phase(floor, page, FANTAN, "closed")
        for _ in range(2):
            entered(hand, "buttons", 'button[value="2"]', "2")
        page.until("[data-result].large", "Two wins")
        entered(hand, "paid")


def blackjack(book: Book, page: Browser, floor: DealerFloor) -> None:
    """A round with one seat that hits and stands; the shoe was begun before."""
    table = table_of(BLACKJACK)
    hand = Hand(page, floor, "dora", f"/dealer/{table}")
    page.until("[data-there]:not([hidden])")
    hand.press("#key-new_shoe summary")
    hand.press("#key-new_shoe input[name=decks][value='6']")
    hand.press("#key-new_shoe form .two button")
    phase(floor, page, BLACKJACK, "burning")
    hand = Hand(page, floor, "dora", f"/dealer/{table}")
    page.until("[data-there]:not([hidden])")
    with book.task(hand, "dealer", "a round of blackjack, by keys", 12):
        entered(hand, "bets_opened")
        phase(floor, page, BLACKJACK, "betting", "burning")
        hand.press(".betting > summary", said="bets")
        form = 'form[data-key="bet"]'
        hand.press(f'{form} input[name=seat][value="3"]', said="seat 3")
        hand.press(f'{form} [data-chip="1000"]', said="1000")
        hand.press(f'{form} input[name=bet][value="main"]', said="main")
        hand.press(f"{form} .two button.main", said="enter")
        kept(hand, form)
        entered(hand, "bell")
        phase(floor, page, BLACKJACK, "dealing")
        floor.report(table, "shoe-1", *(CardDrawn(f"{rank}H") for rank in "234567"))
        page.when(lambda: bool(floor.view(table).detail.get("due", {}).get("hand") != "burn"))
        deal(floor, page, seat_3=["5S", "6H"], dealer=["7D", "KC"])
        for action, cards in (("hit", {"seat_3": ["9C"], "dealer": ["KC"]}), ("stand", {"dealer": ["KC"]})):
            row = 'form[data-row="3"]'
            hand.press(f'{row} button[value="{action}"]', said=action)
            kept(hand, row)
            page.when(lambda: bool(due(floor, "card")) or floor.view(table).phase == "resolved")
            deal(floor, page, **cards)
            page.when(lambda: bool(due(floor, "decision")) or floor.view(table).phase == "resolved")
        page.until("[data-result].large", "17")
        entered(hand, "paid")


def supervisor(book: Book, page: Browser, floor: DealerFloor) -> None:
    """A round that a gap in the events suspended is void."""
    table = table_of(FANTAN)
    dealer = Hand(page, floor, "dora", f"/dealer/{table}")
    page.until("[data-there]:not([hidden])")
    entered(dealer, "buttons_separated")
    phase(floor, page, FANTAN, "covered")
    entered(dealer, "bets_opened")
    phase(floor, page, FANTAN, "betting")
    floor.report(table, "console-1", EventsMissed(1))
    phase(floor, page, FANTAN, "suspended")
    hand = Hand(page, floor, "sam", "/")
    why = "events were lost"
    with book.task(hand, "supervisor", "voids a suspended round", 6, len(why)):
        hand.press(f"[data-live='tile/{table}'] a", said="the tile")
        form = "#decide details[open] form[action$='/void']"
        page.until(form)
        hand.write(f"{form} [name=why]", why)
        hand.press(f"{form} button", said="Void", sure=True)
        page.until("#decide .done", "done.")
        page.when(lambda: any(one.void for one in floor.view(table).results))


def inspector(book: Book, page: Browser, floor: DealerFloor) -> None:
    """The round of fantan that was played, by its date; its article; its print."""
    table = table_of(FANTAN)
    hand = Hand(page, floor, "ines", "/")
    year, month, day = floor.view(table).results[0].round.split(":")[1].split("-")
    with book.task(hand, "inspector", "finds a round by date, its article, prints", 9, 15):
        hand.press("header nav a[href='/rounds']", said="Rounds")
        hand.write("[name=from]", f"{month}{day}{year}\t1200AM")  # as a browser in English takes a date
        hand.press("form[action='/rounds'] button.main", said="Find")
        hand.press(f"th a[href^='/table/{table}/rounds']", said=table)
        hand.press(f"a[href*='{table}/round/'], a[href*='/round/{table}']", ":1", said="the round")
        page.until("main", "Two wins")
        hand.press("main .version details a[href^='/law/']", said="the article")
        page.until("main", re.sub(r"\D*(\d+).*", r"\1", hand.where.partition("#")[2]) or "")
        page.driver.back()
        hand.presses += 1
        hand.steps.append("back")
        page.until("[data-print]")
        page.driver.execute_script("window.print = () => { document.body.dataset.printed = '1'; }")
        hand.press("[data-print]", said="Print")
        page.until("body[data-printed]")


def manager(book: Book, page: Browser, floor: DealerFloor) -> None:
    """A table is opened with its limits, and its win of the shift is found; then it is closed."""
    table = table_of(FANTAN)

    def state_is(state: str) -> None:
        edges = floor.house.site.edges.values()
        page.when(lambda: any(table in one.info.signs and one.info.signs[table].state == state for one in edges))

    hand = Hand(page, floor, "mona", "/")
    with book.task(hand, "manager", "opens a table with its limits", 5, 10):
        hand.press("header nav a[href='/floor']", said="Floor")
        hand.press(f"main a[href='/floor/{table}']", said=table)
        hand.write("[name=minimum]", "1.00")
        hand.write("[name=maximum]", "500.00")
        hand.press("form[action$='/sign/open'] button.main", said="Open the table")
        state_is("open")
    hand = Hand(page, floor, "mona", "/")
    with book.task(hand, "manager", "finds the win of this shift by game", 5):
        hand.press("header nav a[href='/floor']", said="Floor")
        hand.choose("[name=by]", "game")
        hand.press("form[action='/floor'] button.main", said="Display")
        hand.press("form[action='/floor'] a.button", "This shift", said="This shift")
        page.until("table.floor tfoot", "All")
    hand = Hand(page, floor, "mona", f"/table/{table}")
    with book.task(hand, "manager", "closes a table", 3):
        hand.press(f"main a[href='/floor/{table}']", said="Table sheet")
        hand.press("form[action$='/sign/close'] button", said="Close the table", sure=True)
        state_is("closed")


TASKS: tuple[Callable[[Book, Browser, DealerFloor], None], ...] = (fantan, blackjack, supervisor, inspector, manager)


def at_tables(
    book: Book, folder: Path, tasks: tuple[Callable[[Book, Browser, DealerFloor], None], ...] = TASKS
) -> None:
    """The tasks of dealers, supervisors and inspectors."""
    with opened(DealerFloor(folder, (FANTAN, BLACKJACK))) as floor, browser(floor) as page:
        for task in tasks:
            task(book, page, floor)


def in_a_pit(book: Book, folder: Path) -> None:
    """The tasks of a technician, and what a wall shows."""
    (folder / "small").mkdir()
    with full_pit(folder, 60) as pit, full_pit(folder / "small", 24) as small, browser(pit) as page:
        walls(book, page, pit, small)
        technician(book, page, pit)
        manager_of_devices(book, page, pit)


def main() -> None:
    """All of them."""
    book = Book()
    with tempfile.TemporaryDirectory(prefix="feltd-tasks-") as directory:
        for part in (in_a_pit, at_tables):
            folder = Path(directory) / part.__name__
            folder.mkdir()
            part(book, folder)
    sys.stdout.write(book.text() + "\n")
    if any(one.too_much for one in book.done):
        sys.exit("a task takes more presses or keys than it may")


if __name__ == "__main__":
    main()
