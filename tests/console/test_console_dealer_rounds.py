"""A whole round of every game on the dealer's page in a real browser, by clicks: from the opened bets to the result.

Broker, edge, rules and console are real; the devices of the table report from the test. What the dealer enters is
entered by keys: no test types anything.
"""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import pytest
from axe_core_python.selenium import Axe
from dealer_floor import DealerFloor, table_of
from floor import Browser, opened
from helpers import at_length

from protocols.contract.events import (
    CardDrawn,
    DiceAgitated,
    DiceCovered,
    DiceUncovered,
    EventsMissed,
    HandDispensed,
    MachineIdentified,
    MachineMeters,
)
from rules import RULESETS
from simulators.lab.broker import find_mosquitto

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(shutil.which("chromedriver") is None, reason="chromium-driver is not installed"),
]


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DealerFloor]:
    with opened(DealerFloor(tmp_path_factory.mktemp("dealers"))) as one:
        yield one


class Dealer:
    """Somebody at the page of a table, with one finger."""

    def __init__(self, floor: DealerFloor, page: Browser, ruleset: str, who: str = "dora") -> None:
        self.floor, self.page, self.table = floor, page, table_of(ruleset)
        page.come_in(who)
        page.go(f"/dealer/{self.table}")
        page.until("[data-there]:not([hidden])")

    def due(self, kind: str) -> bool:
        return bool(self.floor.view(self.table).detail.get("due", {}).get("kind") == kind)

    def _differs(self, before: dict[str, Any]) -> bool:
        return self.floor.view(self.table).detail != before

    def device(self, *events: object) -> None:
        self.floor.report(self.table, "device-1", *events)  # type: ignore[arg-type]

    def phase(self, *phases: str) -> None:
        """Wait until the rules and the page show it."""
        self.page.when(lambda: self.floor.view(self.table).phase in phases)

    def click(self, css: str) -> None:
        """A key that is live, in sight and large enough for a finger."""
        assert self.page.tap(css) >= 43.5, css

    def key(self, name: str, css: str = "button") -> None:
        """A key, until the edge has it."""
        form = f'form[data-key="{name}"]'
        self.click(f"{form} {css}")
        self.kept(form)

    def kept(self, form: str) -> None:
        said = f"{form} [data-said]"
        self.page.when(lambda: self.page.text(said) in ("recorded", "enter it once more"))
        self.page.when(lambda: not self.page.there(f"{form}[data-busy]"))

    def sure(self, name: str, *choices: str) -> None:
        """A key that asks once more."""
        for css in choices:
            self.page.when(lambda: self.unfolded(name))
            self.click(f"#key-{name} {css}")
        self.page.when(lambda: self.unfolded(name))
        self.click(f"#key-{name} form .two button")
        self.page.when(lambda: not self.page.there(f"#key-{name} form[data-busy]"))
        self.page.when(lambda: self.floor.house.dealers.units[self.table].waiting == 0)

    def unfolded(self, name: str) -> bool:
        """Whether the fold of a key is open. A press opens it; a page that is drawn again just then may close it."""
        if self.page.there(f"#key-{name}[open]"):
            return True
        self.click(f"#key-{name} summary")
        return False

    def bet(self, seat: int, bet: str, chip: int = 1000) -> None:
        if not self.page.there(".betting[open]"):
            self.click(".betting > summary")
        form = 'form[data-key="bet"]'
        self.click(f'{form} input[name=seat][value="{seat}"]')
        self.click(f'{form} [data-chip="{chip}"]')
        assert self.page.text(f'{form} [data-chip="{chip}"]').endswith(f"\u00a0{chip // 100}.{chip % 100:02}")
        fold = f'details[name="families"]:has(input[value="{bet}"])'
        if self.page.there(f"{fold}:not([open])"):
            self.page.tap(f"{fold} > summary")
        self.click(f'{form} input[name=bet][value="{bet}"]')
        self.click(f"{form} .two button.main")
        self.kept(form)

    def deal(self, **hands: list[str]) -> None:
        """The shoe gives each card that is due, until the table waits for a person or the round is over."""
        while True:
            due = self.floor.view(self.table).detail.get("due", {})
            if due.get("kind") != "card":
                return
            name = due["hand"].replace(".1", "")
            card = hands[f"seat_{name}" if name.isdecimal() else name].pop(0)
            before = self.floor.view(self.table).detail
            self.device(CardDrawn(card))
            self.page.when(partial(self._differs, before))

    def dice(self, key: str, *faces: int) -> None:
        """Entered twice alike, die by die."""
        for _ in range(2):
            for die, face in enumerate(faces, 1):
                self.click(f'form[data-key="{key}"] input[name=face_{die}][value="{face}"]')
            self.key(key, "button.main")

    def twice(self, key: str, css: str) -> None:
        for _ in range(2):
            self.key(key, css)

    def act(self, seat: int, action: str) -> None:
        row = f'form[data-row="{seat}"]'
        self.click(f'{row} button[value="{action}"]')
        self.kept(row)

    def lay(self, hand: str, *cards: str) -> None:
        """The cards of a hand at a showdown, each by its rank and its suit."""
        place = "#key-showdown"
        self.click(f'{place} [data-hand="{hand}"]')
        for card in cards:
            self.click(f'{place} input[name=lay_rank][value="{card[0]}"]')
            self.click(f'{place} input[name=lay_suit][value="{card[1]}"]')

    def result(self, *words: str) -> str:
        """The result as the page shows it, in large."""
        self.page.until("[data-result].large")
        for word in words:
            self.page.until("[data-result].large", word)
        return self.page.text("[data-result].large")

    def paid(self) -> None:
        self.key("paid")


def fantan(one: Dealer) -> None:
    one.key("buttons_separated")
    one.phase("covered")
    one.key("bets_opened")
    one.phase("betting")
    one.bet(3, "fan:2")
    one.bet(5, "kuoc:1-2", 500)
    one.key("bell")
    one.phase("closed")
    one.twice("buttons", 'button[value="2"]')
    one.result("Two wins", "38.50")
    one.paid()


def shaken(one: Dealer) -> None:
    one.device(DiceCovered(), *(DiceAgitated("lever") for _ in range(3)))
    one.phase("covered", "betting")
    if not one.table.startswith("angola"):  # there the light of the third pull opens the bets
        one.key("bets_opened")
    one.phase("betting")
    one.bet(3, "big")
    one.key("bell")
    one.device(DiceUncovered())
    one.phase("uncovered")
    one.dice("dice", 2, 5, 6)
    one.result("13")
    one.paid()


def french_bank(one: Dealer) -> None:
    one.key("bets_opened")
    one.bet(3, "aces")
    one.key("bell")
    one.phase("closed")
    one.dice("throw", 1, 1, 1)
    one.result("3")
    one.paid()


def craps(one: Dealer) -> None:
    one.key("hand_passed", 'button[value="4"]')
    one.key("bets_opened")
    one.bet(4, "pass")
    one.key("bell")
    one.phase("closed")
    one.dice("throw", 3, 4)
    one.result("7")
    one.paid()


def roulette(one: Dealer) -> None:
    one.key("bets_opened")
    one.phase("betting")
    one.bet(3, "straight:17", 100)
    if one.table.startswith("macau"):
        one.key("bell")
        one.phase("closed")
    one.key("ball_launched", "button.main")
    one.phase("running")
    if one.table.startswith("angola"):
        one.key("bell")
    one.twice("ball", 'button[value="17"]')
    one.result("17", "36.00")
    one.paid()


def baccarat(one: Dealer) -> None:
    one.sure("new_shoe", 'input[name=decks][value="8"]')
    one.device(*map(CardDrawn, ("AS",) if one.table.startswith("macau") else ()))
    one.key("bets_opened")
    one.phase("betting")
    one.bet(3, "player")
    one.key("bell")
    one.phase("closed")
    one.device(*map(CardDrawn, ("9S", "2D", "KH", "3C")))
    one.result("9")
    one.paid()


def blackjack(one: Dealer) -> None:
    one.sure("new_shoe", 'input[name=decks][value="6"]')
    one.key("seat_opened", 'button[value="3"]')
    one.key("bets_opened")
    one.phase("betting")
    one.bet(3, "main")
    one.key("bell")
    one.phase("dealing")
    burnt = 6 if one.table.startswith("macau") else 1
    one.device(*(CardDrawn(f"{rank}H") for rank in "234567"[:burnt]))
    one.page.when(lambda: one.floor.view(one.table).detail["due"]["hand"] != "burn")
    one.deal(seat_3=["5S", "6H"], dealer=["7D", "KC"])
    one.act(3, "hit")
    one.page.when(lambda: one.due("card"))
    one.deal(seat_3=["9C"], dealer=["KC"])
    one.page.when(lambda: one.due("decision"))
    one.act(3, "stand")
    one.page.when(lambda: one.due("card") or one.floor.view(one.table).phase == "resolved")
    one.deal(dealer=["KC"])
    one.result("17", "20.00")
    one.paid()


def stud_poker(one: Dealer) -> None:
    one.key("bets_opened")
    one.phase("betting")
    one.click("[data-amount] [data-chip='1000']")
    for seat in (1, 3):
        one.act(seat, "ante")
    one.key("bell")
    one.phase("dealing")
    one.device(*(HandDispensed(5) for _ in range(3)))
    one.click('form[data-key="card_exposed"] select')
    for css in ("input[name=rank][value='A']", "input[name=suit][value='S']"):
        one.click(f'form[data-key="card_exposed"] {css}')
    one.key("card_exposed", "button.main")
    one.phase("deciding")
    one.act(1, "raise")
    one.act(3, "fold")
    one.phase("showdown")
    one.page.until("[data-next]", "enter the hands: Dealer")
    one.lay("dealer", "KD", "9C", "4H", "2S", "AS")
    one.key("showdown", "button.main")
    one.page.until("[data-next]", "enter the hands: Seat 1")
    one.lay("seat_1", "QD", "QH", "7S", "5C", "3D")
    one.key("showdown", "button.main")
    one.result("1")
    one.paid()


def poker(one: Dealer) -> None:
    """Chips by taps, first bets, a raise that seat 1 calls with all its chips, cards from the shoe; hands are shown."""
    own = 4 if "omaha" in one.table else 2
    one.click("[data-amount] [data-chip='1000']")
    one.act(1, "stack")
    one.click("[data-amount] [data-chip='']")
    one.click("[data-amount] [data-chip='10000']")
    for seat in range(2, 5):
        one.act(seat, "stack")
    one.click("[data-amount] [data-chip='']")
    one.key("bets_opened")
    one.phase("betting")
    for seat in range(1, 5 if "synthetic" in one.table else 3):
        one.act(seat, "post")
    cards = iter([rank + suit for suit in "SHDC" for rank in "AKQJT98"])
    for _ in range(4 * own):
        one.device(CardDrawn(next(cards)))
    raised = sides = False
    while one.floor.view(one.table).phase != "resolved":
        before = one.floor.view(one.table).detail
        due = before.get("due") or {}
        if due.get("kind") == "card":
            one.device(CardDrawn(next(cards)))
        elif due and not raised and due["seat"] != 1 and one.floor.view(one.table).phase == "deciding":
            raised = True
            one.page.until(f'form[data-row="{due["seat"]}"].due')
            for _ in range(2):
                one.click("[data-amount] [data-chip='1000']")
            one.act(due["seat"], "bet" if "bet" in due["actions"] else "raise")
        elif due:
            word = next(word for word in ("show", "check", "call") if word in due["actions"])
            one.act(due["seat"], word)
        one.page.when(partial(one._differs, before))
        if raised and len(before["pots"]) > 1:
            sides = True
            assert one.page.there("[data-now] .pots li:nth-child(2) meter")
    assert sides
    one.result("wins")
    one.paid()


def machine(one: Dealer) -> None:
    """It is closed by the key; what it counted and returned is the result."""
    meters = dict.fromkeys(("coin_in", "coin_out", "jackpot", "drop", "games_played"), 0)
    one.device(MachineIdentified(serial="SN-1", paytable="LUCKY", return_bp=9000, credit=1), MachineMeters(meters))
    one.phase("betting")
    one.device(MachineMeters({**meters, "coin_in": 2000, "coin_out": 1700, "games_played": 10}))
    one.page.when(lambda: one.floor.view(one.table).detail.get("counted", {}).get("bets") == 2000)
    one.sure("table_closed")
    one.result("90.00 %", "SN-1")


def chemin_de_fer(one: Dealer) -> None:
    """Players sit down, one tells his bank, one covers it, and a standing one makes banco; both show at last."""
    for seat in (1, 2, 3, 4, 14):
        one.key("seat_opened", f'button[value="{seat}"]')
    one.key("bets_opened")
    one.phase("betting")
    one.page.until('form[data-row="1"].due')
    one.click("[data-amount] [data-chip='10000']")
    one.act(1, "bank")
    one.page.until('form[data-row="1"] [data-cards]', "bank")
    one.bet(2, "cover")
    one.act(14, "banco")
    one.key("bell")
    one.phase("closed")
    one.deal(player=["2S", "2H"], banker=["9D", "KD"])
    one.page.until("[data-next]", "Player")
    assert not one.page.there("[data-now] [data-open] .playing[title]")
    for seat, word in ((14, "draw"), (1, "show"), (14, "show")):
        one.page.until(f'form[data-row="{seat}"].due')
        one.act(seat, word)
    one.result("9")
    one.paid()


ROUNDS: dict[str, Callable[[Dealer], None]] = {
    "angola.gaming-machines": machine,
    "macau.fantan": fantan,
    "macau.cussec": shaken,
    "macau.fish-prawn-crab": shaken,
    "angola.cussec": shaken,
    "angola.french-bank": french_bank,
    "angola.craps": craps,
    **dict.fromkeys(("macau.roulette", "angola.american-roulette", "angola.french-roulette"), roulette),
    **dict.fromkeys(("macau.baccarat", "angola.baccarat", "angola.baccarat-macau"), baccarat),
    **dict.fromkeys(("macau.blackjack", "angola.blackjack"), blackjack),
    **dict.fromkeys(("macau.stud-poker", "angola.stud-poker"), stud_poker),
    "angola.chemin-de-fer": chemin_de_fer,
    **dict.fromkeys(("angola.holdem", "angola.omaha", "angola.synthetic-poker"), poker),
}


def test_every_game_is_played() -> None:
    assert set(ROUNDS) == set(RULESETS)


@pytest.mark.parametrize("ruleset", ROUNDS)
def test_whole_round_is_played_by_clicks(floor: DealerFloor, window: Browser, ruleset: str) -> None:
    window.complaints()
    ROUNDS[ruleset](Dealer(floor, window, ruleset))
    window.when(lambda: floor.view(table_of(ruleset)).resolved == 1)
    assert window.complaints() == []


def suspended_for_seats(floor: DealerFloor, window: Browser) -> Dealer:
    """A table of blackjack after a gap in its events: the round stops at the bell, its seats are not known."""
    one = Dealer(floor, window, "macau.blackjack")
    one.sure("new_shoe", 'input[name=decks][value="6"]')
    one.device(*(CardDrawn(f"{rank}H") for rank in "234567"), EventsMissed(1))
    one.key("bets_opened")
    one.phase("betting")
    one.key("bell")
    one.phase("suspended")
    return one


def test_suspended_round_names_what_ends_it_and_who_does(floor: DealerFloor, window: Browser) -> None:
    """A void would only lead to the next suspension; the seats that play, named by a supervisor, end it."""
    one = suspended_for_seats(floor, window)
    doubt = "[data-now] .doubt"
    window.until(doubt, "Name the seats that play: a supervisor does it")
    window.until(doubt, "the next one stops at its bell too")
    assert [found["id"] for found in Axe().run(window.driver)["violations"]] == []
    one.click(f'{doubt} [data-way="void"]')
    one.click("#key-void form .two button")
    one.phase("idle")
    one.key("bets_opened")
    one.phase("betting")
    one.key("bell")
    one.phase("suspended")  # as the page said

    one = Dealer(floor, window, "macau.blackjack", "sam")
    one.click(f'{doubt} [data-way="name_seats"]')
    for seat in (2, 5):
        one.click(f"#key-name_seats [name=seat_on_{seat}]")
    one.click("#key-name_seats .two button")
    one.phase("dealing")
    window.until(doubt, gone=True)
    one.deal(seat_2=["TS", "9S"], seat_5=["TD", "8S"], dealer=["7D", "KC"])
    window.when(lambda: one.due("decision"))
    for seat in (2, 5):
        one.act(seat, "stand")
    window.when(lambda: one.due("card"))
    one.deal(dealer=["KC"])
    one.result("17")
    one.paid()
    one.key("bets_opened")
    one.phase("betting")
    one.key("bell")
    one.phase("dealing")  # and the next round does not stop
    one.sure("void")
    assert window.complaints() == []


def test_main_bets_before_the_bell_end_a_gap(floor: DealerFloor, window: Browser) -> None:
    """The other way out, which needs no supervisor: a bet names its seat."""
    one = suspended_for_seats(floor, window)
    one.sure("void")
    one.phase("idle")
    one.key("bets_opened")
    one.phase("betting")
    for seat in (2, 5):
        one.bet(seat, "main")
    one.key("bell")
    one.phase("dealing")
    one.deal(seat_2=["TS", "9S"], seat_5=["TD", "8S"], dealer=["7D", "KC"])
    window.when(lambda: one.due("decision"))
    for seat in (2, 5):
        one.act(seat, "stand")
    window.when(lambda: one.due("card"))
    one.deal(dealer=["KC"])
    one.result("17", "20.00")
    one.paid()
    assert window.complaints() == []


def test_insurance_is_half_the_bet_and_stands_among_what_is_to_be_paid(floor: DealerFloor, window: Browser) -> None:
    """The main bets were entered on the page, so the rules take no insurance without its amount."""
    one = Dealer(floor, window, "macau.blackjack")
    one.sure("new_shoe", 'input[name=decks][value="6"]')
    one.key("bets_opened")
    one.phase("betting")
    for seat in (5, 2):
        one.bet(seat, "main")
    one.key("bell")
    one.phase("dealing")
    one.device(*(CardDrawn(f"{rank}H") for rank in "234567"))
    window.when(lambda: one.floor.view(one.table).detail["due"]["hand"] != "burn")
    one.deal(seat_2=["TS", "9S"], seat_5=["TD", "8S"], dealer=["AD", "KC"])
    key = 'form[data-row="2"] button[value="insurance"]'
    window.until(key, "insurance MOP\u00a05.00")
    one.click(key)
    one.kept('form[data-row="2"]')
    window.until(f"{key}:disabled", "insurance")
    for seat in (2, 5):
        one.act(seat, "stand")
    window.when(lambda: one.due("card"))
    one.deal(dealer=["KC"])
    one.result("To pay")
    rows = [row.split("\t") for row in window.text(".payments tbody tr").replace("\u00a0", " ").splitlines()]
    assert rows == [
        ["2", "main bet", "MOP 10.00", "MOP 0.00"],
        ["2", "insurance", "MOP 5.00", "MOP 15.00"],
        ["2", "Total", "MOP 15.00", "MOP 15.00"],
        ["5", "main bet", "MOP 10.00", "MOP 0.00"],
        ["", "Total", "MOP 25.00", "MOP 15.00"],
    ]
    one.paid()
    assert window.complaints() == []


def test_two_results_that_differ_lead_to_the_key_that_decides(floor: DealerFloor, window: Browser) -> None:
    """A wrong result, put right before the payment: the page leads back to the key, and says what each way does."""
    one = Dealer(floor, window, "macau.fantan")
    one.key("buttons_separated")
    one.key("bets_opened")
    one.phase("betting")
    one.key("bell")
    one.phase("closed")
    one.twice("buttons", 'button[value="3"]')
    one.result("Three wins")
    one.twice("buttons", 'button[value="2"]')
    one.phase("suspended")
    doubt = "[data-now] .doubt"
    window.until(doubt, "The first result stands and is paid")
    one.click(f'{doubt} [data-way="buttons"]')
    focused = 'form[data-key="buttons"] button:focus'
    window.until(focused)
    one.twice("buttons", 'button[value="2"]')
    one.result("Two wins")
    window.until(doubt, gone=True)
    one.paid()
    assert window.complaints() == []


def test_dead_keys_say_why_and_a_void_asks_once_more(floor: DealerFloor, window: Browser) -> None:
    one = Dealer(floor, window, "angola.french-bank")
    one.key("bets_opened")
    one.phase("betting")
    window.until('[data-slot="bets_opened"]:disabled', "bets are already open")
    assert window.find('[data-slot="paid"]').get_attribute("title") == "no result yet"
    assert not window.find('[data-slot="paid"] button').is_enabled()
    voided = floor.view(one.table).voided

    one.click("#key-void summary")
    window.until("#key-void .does", "The round ends without a result.")
    assert window.text("#key-void .danger") == "Yes: Void"
    one.click("#key-void [data-close]")
    window.until("#key-void[open]", gone=True)
    assert floor.view(one.table).phase == "betting"
    one.sure("void")
    one.phase("idle")
    window.when(lambda: floor.view(one.table).voided == voided + 1)
    window.until("[data-result].large", "Void")
    window.until("#why-void", "no round is open")
    fold = window.find("#key-void summary")
    assert (fold.get_attribute("title"), fold.get_attribute("aria-describedby")) == ("no round is open", "why-void")
    window.tap("#key-void summary")
    assert not window.there("#key-void[open]")


SIZES = ((390, 844), (1024, 768), (1280, 800))
Look: TypeAlias = tuple[str, tuple[int, int], str, str]
# Every size, theme and language once, each with another game; all of them in the nightly tests.
LOOKS: tuple[Look, ...] = at_length(
    (
        ("macau.fantan", SIZES[0], "light", "en"),
        ("macau.roulette", SIZES[1], "dark", "zh-Hant"),
        ("angola.blackjack", SIZES[2], "dark", "pt"),
    ),
    tuple(product(RULESETS, SIZES, ("light", "dark"), ("en", "pt", "zh-Hant"))),
)
SMALL = """
const low = [], keys = "button, summary, .button, select, input, .tap label";
for (const one of document.querySelector("main").querySelectorAll(keys)) {
  const box = one.getBoundingClientRect();
  if (one.closest(".tap") && one.tagName === "INPUT") continue;
  if (!box.width || Math.min(box.height, box.width) > 43.5) continue;
  low.push(`${one.outerHTML.slice(0, 90)} ${box.width}x${box.height}`);
}
return low;
"""


@pytest.mark.parametrize(("ruleset", "size", "theme", "lang"), LOOKS)
def test_page_fits_every_screen_and_axe_finds_nothing(
    floor: DealerFloor, window: Browser, ruleset: str, size: tuple[int, int], theme: str, lang: str
) -> None:
    driver, (width, height) = window.driver, size
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        window.come_in("sam", lang=lang, theme=theme)
        window.go(f"/dealer/{table_of(ruleset)}")
        window.until("[data-there]:not([hidden])")
        driver.execute_script("for (const one of document.querySelectorAll('main details')) one.open = true")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert driver.execute_script(SMALL) == []
        found = Axe().run(driver)["violations"]
        assert [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found] == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
