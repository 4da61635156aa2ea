"""The page of fairness and the boards: what they say, in three languages, and that no picture says it alone."""

import math
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import msgspec
import pytest
from helpers import result_of
from hypothesis import given, strategies as st

from daemon import console
from daemon.console.fairness import pictures as fair_pictures, scoreboards
from daemon.console.fairness.charts import SPANS, WHEEL, Span, shown
from daemon.console.fairness.fairness import Fairness
from daemon.console.pages import fairness as fair_pages
from daemon.console.site.store import Store
from daemon.words import words
from daemon.words.local import Local
from protocols.contract.topics import Wire

HERE = Path(console.__file__).parent
NOW = datetime(2026, 11, 20, 20, 0, 0, tzinfo=UTC)
ENGLISH = Local("en", UTC)
OTHERS = ("colour.", "figure.", "outcome.")  # words of other parts


def environment(lang: words.Lang) -> jinja2.Environment:
    """The templates as the console renders them, with a bare page around."""

    def t(key: str, /, **values: Any) -> str:
        return key if key.startswith(OTHERS) else words.say(lang, key, **values)

    bare = "{% block title %}{% endblock %}{% block head %}{% endblock %}<main>{% block main %}{% endblock %}</main>"
    loader = jinja2.ChoiceLoader([jinja2.DictLoader({"base.html": bare}), jinja2.FileSystemLoader(HERE / "templates")])
    made = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    made.filters["utc"] = lambda value: value.isoformat()
    made.globals.update(t=t, local=Local(lang, UTC), colon=": ", may=lambda _role, _right: True)
    return made


def page(fair: Fairness, table: str, span: Span = "service", lang: words.Lang = "en") -> str:
    return (
        environment(lang)
        .get_template("fair_table.html")
        .render(
            table=table,
            user=SimpleNamespace(role="technician"),
            spans=SPANS,
            ranks="A23456789TJQK",
            parts=fair_pages.PARTS,
            view=fair_pages.view(fair, table, span),
            odds=fair_pages.odds,
            chance=fair_pages.chance,
            shown=shown,
        )
    )


@pytest.fixture
def fair(tmp_path: Path) -> Iterator[Fairness]:
    store = Store(tmp_path / "console.db")
    yield Fairness(store, lambda: NOW)
    store.close()


def event(fair: Fairness, table: str, seq: int, kind: str, device: str, seconds: float = 0, data: Any = None) -> None:
    source = f"felt/1/site/table/{table}/device/{device}"
    at = NOW + timedelta(seconds=seconds)
    raw = msgspec.Raw(msgspec.json.encode(data or {}))
    fair.on_event(table, Wire("1.0", f"edge-1:{table}:{seq}", source, kind, at, seq, data=raw))


def ended(fair: Fairness, table: str, number: int, game: str, outcome: dict[str, Any], **more: Any) -> None:
    given_ = {"round": f"{table}:2026-11-20:{number}", "ruleset": game, "outcome": outcome, "void": None}
    fair.on_result(table, "resolved", result_of(given_ | {"evidence": [f"edge-1:{table}:{number}"]} | more))


def spins(fair: Fairness, pockets: list[str], table: str = "rou-1") -> None:
    for number, pocket in enumerate(pockets, 1):
        event(fair, table, number, "ball.landed", "wheel-1", data={"pocket": pocket})
        ended(fair, table, number, "macau.roulette", {"pocket": pocket})
    fair.flush()


# ---- what it says


def test_a_wheel_in_words_of_a_technician(fair: Fairness) -> None:
    rng = random.Random(1)
    spins(fair, rng.choices(WHEEL, k=100))
    assert "Not enough data since the first result: 100 of at least 185 spins." in page(fair, "rou-1")
    spins(fair, rng.choices(WHEEL, k=1240), table="rou-2")
    text = page(fair, "rou-2")
    (wheel,) = fair_pages.view(fair, "rou-2", "service").wheels
    after = ENGLISH.number(wheel.verdict.values["after"])
    assert f"Spins since the first result: 1,240; {after} in the same proportions would raise an alarm." in text
    assert f"p {fair_pages.chance(ENGLISH, wheel.sector.p)}" in text
    assert wheel.n == sum(wedge.count for wedge in wheel.ring.wedges) == sum(bar.count for bar in wheel.order.bars)


def test_the_page_alarms_as_soon_as_it_is_looked_at(fair: Fairness) -> None:
    spins(fair, random.Random(2).choices(WHEEL, [8.0] + [1.0] * 36, k=800))
    for other in range(5):  # there are more charts than one call of the alarms tests
        ended(fair, f"other-{other}", 1, "macau.cussec", {"faces": [1, 2, 3]})
    fair.flush()
    text = page(fair, "rou-1")
    assert re.search(r"Look at the wheel: pocket 0 came \d+×, 22 were due, in 800 spins\.", text)
    fair.serviced("rou-1", "wheel-1", "frets <tightened>")
    text = page(fair, "rou-1")
    assert "Look at the wheel" not in text
    assert "frets &lt;tightened&gt;" in text
    (wheel,) = fair_pages.view(fair, "rou-1", "all").wheels
    assert (wheel.n, wheel.verdict.kind) == (800, "few")


def test_something_that_may_be_beginning_is_no_alarm(fair: Fairness) -> None:
    rng = random.Random(3)
    kinds = set()
    pockets: list[str] = []
    while "alarm" not in kinds and len(pockets) < 4000:
        pockets += rng.choices(WHEEL, [2.2] + [1.0] * 36, k=100)
        spins(fair, pockets)
        (wheel,) = fair_pages.view(fair, "rou-1", "service").wheels
        kinds.add(wheel.verdict.kind)
        if wheel.verdict.kind == "watch":
            assert wheel.test is not None
            assert not wheel.test.alarmed
    assert kinds == {"few", "fine", "watch", "alarm"}


@pytest.mark.parametrize("seed", [1, 5, 6])
def test_a_wheel_that_lands_as_often_as_foretold_in_the_same_way_alarms(fair: Fairness, seed: int) -> None:
    """What the sentence promises, by the real test: not long before, and then at the latest."""
    pockets = random.Random(seed).choices(WHEEL, k=400)
    spins(fair, pockets)
    (wheel,) = fair_pages.view(fair, "rou-1", "service").wheels
    foretold = wheel.verdict.values["after"]
    before, after = math.floor(foretold / 400 * 0.9), math.ceil(foretold / 400)
    (fair_chart,) = [chart for chart in fair.charts("rou-1") if chart.name == "wheel"]
    for times, alarmed in ((before, False), (after, True)):
        spins(fair, pockets * times)  # those that were counted count once
        test = fair.test(fair_chart)
        assert test is not None
        assert (test.n, test.alarmed) == (400 * times, alarmed)


def test_what_never_leaves_even_is_not_foretold(fair: Fairness) -> None:
    spins(fair, list(WHEEL) * 10)
    assert "any number in the same proportions raises no alarm" in page(fair, "rou-1")
    (wheel,) = fair_pages.view(fair, "rou-1", "service").wheels
    assert (wheel.verdict.kind, wheel.verdict.part) == ("fine", 0.0)


def test_the_hand_of_the_gauge_stands_where_the_bet_is(fair: Fairness) -> None:
    spins(fair, random.Random(2).choices(WHEEL, [1.0] * 37, k=100))
    assert "gauge" not in page(fair, "rou-1")  # too few to say anything
    spins(fair, random.Random(2).choices(WHEEL, [8.0] + [1.0] * 36, k=800))
    assert 'transform="rotate(180.0 60 60)"' in page(fair, "rou-1")


def everything(fair: Fairness) -> dict[str, str]:
    """A table of each kind, with all that can be counted there."""
    rng = random.Random(4)
    spins(fair, rng.choices(WHEEL, k=300))
    for number in range(1, 80):
        faces = [rng.randint(1, 6) for _ in range(3)]
        event(fair, "cus-1", number, "dice.read", "shaker-1", data={"faces": faces})
        ended(fair, "cus-1", number, "macau.cussec", {"faces": sorted(faces)})
        event(fair, "sorts-1", number, "dice.read", "shaker-1", data={"faces": sorted(faces)})
        ended(fair, "sorts-1", number, "macau.cussec", {"faces": sorted(faces)})
    options = {"decks": 8, "device": "shoe"}
    for shoe in (1, 2):
        for number in range(1, 12):
            name = f"bac-1:2026-11-20:{shoe}:{number}"
            hands = {"player": ["9D"] * (shoe - 1) + ["2C"], "banker": rng.sample(["AS", "KH", "7C", "TD"], 2)}
            ended(fair, "bac-1", number, "macau.baccarat", {"hands": hands}, round=name, options=options)
    event(fair, "bac-1", 1, "card.unreadable", "shoe-1")
    event(fair, "bac-1", 2, "card.drawn", "shoe-1", data={"card": "3S"})
    ended(fair, "stud-1", 1, "macau.stud-poker", {"hands": {"dealer": ["AS", "KS"]}})
    for seq, kind in enumerate(("shuffle.started", "shuffle.finished", "shuffle.failed", "bets.opened"), 2):
        event(fair, "stud-1", seq, kind, "shuffler-1", 30.0 * seq)
    event(fair, "stud-1", 6, "bets.closed", "console-1", 200)
    fair.flush()
    return {"rou-1": "wheel", "cus-1": "dice", "sorts-1": "dice", "bac-1": "cards", "stud-1": "shuffles"}


@pytest.mark.parametrize("lang", words.LANGS)
def test_every_table_has_a_page_in_every_language_and_span(fair: Fairness, lang: words.Lang) -> None:
    for table in [*everything(fair), "empty-1"]:
        for span in SPANS:
            text = page(fair, table, span, lang)
            assert "<script" not in text
            assert "style=" not in text  # the policy forbids it
            # Each picture says what it shows, and a table beside it has the numbers.
            assert text.count("<svg") == text.count('role="img" aria-label="')
            assert text.count('<svg class="fair') <= 2 * text.count("<table")


def test_a_shuffler_and_a_reader_in_numbers(fair: Fairness) -> None:
    everything(fair)
    stud = fair_pages.view(fair, "stud-1", "all")
    assert [(one.name, one.bad, one.n) for one in stud.rates] == [("shuffles", 1, 2)]
    assert [(one.name, one.n) for one in stud.times] == [("shuffle", 1), ("phase.betting", 1)]
    assert [one.seconds[0] for one in stud.times] == [pytest.approx(30, rel=0.021), pytest.approx(50, rel=0.021)]
    bac = fair_pages.view(fair, "bac-1", "all")
    assert [(one.name, one.bad, one.n) for one in bac.rates] == [("reads", 1, 2)]
    text = page(fair, "bac-1")
    assert "More 9♦ than 8 decks have" in text
    assert [one.impossible for one in bac.shoes] == [("9D", "2C"), ("2C",)]
    assert bac.cards[0].rows[0] == ("S", (bac.cards[0].rows[0][1][0], *[0] * 12))  # no 3♠, which only the reader told


def test_the_rate_of_a_reader_leaves_out_days_of_which_no_card_is_known(fair: Fairness) -> None:
    event(fair, "bac-1", 1, "card.drawn", "shoe-1", -2 * 86_400)
    event(fair, "bac-1", 2, "card.unreadable", "shoe-1", -2 * 86_400)
    for seq in (3, 4, 5):
        event(fair, "bac-1", seq, "card.unreadable", "shoe-1")
    fair.flush()
    (reads,) = fair_pages.view(fair, "bac-1", "week").rates
    assert (reads.bad, reads.n) == (1, 2)
    (reads,) = fair_pages.view(fair, "bac-1", "today").rates
    assert (reads.bad, reads.n) == (3, 0)


def test_a_service_says_its_time_and_zone_and_is_noted_once(fair: Fairness) -> None:
    spins(fair, ["5"])
    assert "no service noted" in page(fair, "rou-1")
    fair.serviced("rou-1", "wheel-1", "levelled")
    text = page(fair, "rou-1")
    assert ("no service noted" in text, "since the first result:" in text) == (False, False)
    assert "Not enough data since the last service: 0 of" in text
    assert re.search(r'title="[^"]* UTC" class="num day">\d+ \w+ \d{4} \d\d:\d\d:\d\d</time> levelled', text)
    assert re.search(r'action="/table/rou-1/fairness" data-once>', text)


def test_dice_are_shown_together_in_whatever_order_they_are_told(fair: Fairness) -> None:
    everything(fair)
    for table in ("cus-1", "sorts-1"):
        (dice,) = fair_pages.view(fair, table, "all").dice
        assert (dice.device, dice.n) == ("shaker-1", 237)
        assert "All dice" in page(fair, table)


def test_each_chart_shows_its_own_threshold(fair: Fairness) -> None:
    for table in ("rou-1", "rou-2"):
        spins(fair, ["5"], table)
    for other in range(5):
        ended(fair, f"other-{other}", 1, "macau.cussec", {"faces": [1, 2, 3]})
    fair.flush()
    assert "the alarm is at 200<" in page(fair, "rou-1")
    assert "the alarm is at 600<" in page(fair, "rou-2")
    assert "the alarm is at 4,200<" in page(fair, "other-3")


def test_numbers_as_people_read_them() -> None:
    assert [fair_pages.roughly(number) for number in (3.2, 87, 8_911, 123_456)] == [4, 87, 9_000, 130_000]
    assert [fair_pages.odds(ENGLISH, one) for one in (0.0, 0.5, 1.0, 9.96, 1234, 1e9)] == [
        *("< 0.01", "0.50", "1.0", "10", "1,234", "> 1,000,000"),
    ]
    assert [fair_pages.chance(ENGLISH, p) for p in (0.0, 0.0123, 0.5, 1.0)] == ["< 0.0001", "0.012", "0.50", "1.00"]
    assert fair_pages.chance(Local("pt", UTC), 0.0123) == "0,012"


# ---- pictures


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=60))
def test_bars_are_as_high_as_their_counts_and_stay_inside(counts: list[int]) -> None:
    names = [str(place) for place in range(len(counts))]
    drawn = fair_pictures.bars(names, counts)
    assert [(bar.name, bar.count) for bar in drawn.bars] == list(zip(names, counts, strict=True))
    for bar in drawn.bars:
        assert 0 <= bar.x <= bar.x + bar.width <= drawn.width
        assert 0 <= bar.y <= bar.y + bar.height < fair_pictures.HEIGHT
    by_count = sorted(drawn.bars, key=lambda bar: bar.count)
    assert [bar.height for bar in by_count] == sorted(bar.height for bar in by_count)
    if sum(counts):
        assert drawn.high <= drawn.due <= drawn.low


@given(st.lists(st.integers(0, 500), min_size=37, max_size=37), st.integers(0, 36))
def test_a_wheel_is_drawn_inside_its_rim(counts: list[int], first: int) -> None:
    drawn = fair_pictures.circle(WHEEL, counts, ["red"] * 37, (first, 9), (3.0, 2.0))
    assert [wedge.count for wedge in drawn.wedges] == counts
    for text in [*(wedge.path for wedge in drawn.wedges), drawn.sector]:
        points = re.findall(r"(?:[ML]|[01] )(-?[\d.]+(?:e-\d+)?) (-?[\d.]+(?:e-\d+)?)(?=[ALZ]|$)", text)
        assert all(math.hypot(float(x), float(y)) <= fair_pictures.RIM + 0.1 for x, y in points)
    assert math.hypot(drawn.x, drawn.y) == pytest.approx(fair_pictures.HUB, abs=0.1)
    assert bool(drawn.sector) == bool(sum(counts))


def test_the_first_pocket_is_on_top_and_the_next_to_its_right() -> None:
    drawn = fair_pictures.circle(WHEEL, [1] * 37, ["red"] * 37, (0, 9), (0.0, 1.0))
    top, right = drawn.wedges[0], drawn.wedges[1]
    assert (top.name, top.x, top.y) == ("0", 0.0, -fair_pictures.NAMES)
    assert right.name == "32"
    assert right.x > 0 > right.y


def test_the_wheel_has_every_pocket_once() -> None:
    assert sorted(map(int, WHEEL)) == list(range(37))
    # Colours alternate around it, which a wrong order would break.
    red = [int(pocket) in scoreboards.RED for pocket in WHEEL[1:]]
    assert all(a != b for a, b in pairwise(red))


# ---- the boards


def coups(letters: str) -> list[dict[str, Any]]:
    names = {"B": "banker", "P": "player", "T": "tie"}
    return [
        {
            "round": f"bac-1:2026-11-20:1:{number}",
            "ruleset": "macau.baccarat",
            "outcome": {"winner": names[letter], "totals": {"player": 6, "banker": 6}, "banker_pair": number == 1},
        }
        for number, letter in enumerate(letters, 1)
    ]


def of(game: str, *outcomes: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"round": f"t-1:2026-11-20:{number}", "ruleset": game, "outcome": outcome}
        for number, outcome in enumerate(outcomes, 1)
    ]


BOARDS = [
    coups("BTPPTB"),
    coups("TT"),
    of("macau.roulette", {"pocket": "0"}, {"pocket": "17", "colour": "black"}, {"pocket": "17", "colour": "black"}),
    of("macau.cussec", {"faces": [1, 2, 3], "total": 6, "triple": False, "size": "small"}),
    of("macau.fish-prawn-crab", {"faces": [1, 1, 1], "total": 3, "triple": True, "figures": ["fish"] * 3}),
    of(
        "angola.craps",
        {"faces": [2, 4], "total": 6, "point": 0, "next_point": 6, "come_out": True, "series": "point_set"},
        {"faces": [3, 4], "total": 7, "point": 6, "next_point": 0, "come_out": False, "series": "seven_out"},
        {"faces": [5, 6], "total": 11, "point": 0, "next_point": 0, "come_out": True, "series": "natural"},
        {"faces": [2, 2], "total": 4, "point": 0, "next_point": 4, "come_out": True, "series": "point_set"},
    ),
    of("macau.fantan", {"number": 4}),
    of("angola.cussec", {"faces": [1, 2, 3], "total": 6, "triple": False, "size": "small"}),
    of("angola.french-bank", {"faces": [1, 2, 3], "total": 6, "chance": "small", "throws": 3}),
    of("macau.blackjack", {"totals": {"dealer": 23}, "results": {"1.1": "win"}, "bust": True}),
    of("macau.stud-poker", {"opens": True, "seats": {"seat_1": "wins"}, "combinations": {"dealer": "one_pair"}}),
]


def board(results: list[dict[str, Any]], lang: words.Lang) -> str:
    made = scoreboards.board(map(result_of, results))
    assert made is not None
    text = '{% import "_scoreboards.html" as boards %}{{ boards.scoreboard(board, kind) }}'
    return environment(lang).from_string(text).render(board=made, kind=scoreboards.kind(made))


@pytest.mark.parametrize("lang", words.LANGS)
@pytest.mark.parametrize("results", BOARDS, ids=lambda results: f"{results[0]['ruleset']}-{len(results)}")
def test_each_board_is_drawn_in_each_language(results: list[dict[str, Any]], lang: words.Lang) -> None:
    text = board(results, lang)
    assert "<table" in text
    assert "style=" not in text
    assert text.count("<table") == text.count("<caption>")


def test_a_result_of_fantan_that_never_came_is_in_the_table() -> None:
    made = scoreboards.board(map(result_of, of("macau.fantan", {"number": 3}, {"number": 3}, {"number": 1})))
    assert isinstance(made, scoreboards.Outcomes)
    assert made.often == (("3", 2), ("1", 1), ("2", 0), ("4", 0))


def test_letters_stand_beside_the_colours() -> None:
    for lang, letters in zip(words.LANGS, ("BPT", "BJE", "莊閒和"), strict=True):
        text = board(coups("BPT"), lang)
        for letter in letters:
            assert f'<span aria-hidden="true">{letter}</span>' in text


# ---- words


def test_every_alarm_has_its_words_and_its_remedy() -> None:
    source = (HERE / "fairness/fairness.py").read_text(encoding="utf-8")
    english = words.catalog("en")
    keys = set(re.findall(r'"(fair\.[a-z_]+)"', source))
    keys |= {f"fair.alarm_{name}" for name in ("card_lacks", "card_extra", "reads", "shuffles")}
    codes = set(re.findall(r'"fairness\.([a-z_]+)"', source)) | {"reads", "shuffles"}
    codes -= {"not_written", "lost"}  # of the log
    assert len(keys) > 8
    assert keys <= set(english)
    assert {f"fair.do_{code}" for code in codes} <= set(english)
