"""What the rules say of a round, in the reader's language: all of it, and on every page that shows it."""

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import Console, opened
from helpers import script

import rules
from daemon.console.live import Viewer
from daemon.consumer import wagers
from daemon.words import words
from drivers import bet_terminals, tcs_saturn
from drivers.fdl_shuffler import REASONS
from protocols.contract.events import DiceThrown, RoundVoided, SpinVoided
from protocols.contract.reasons import Reason, say
from protocols.contract.results import Irregularity
from protocols.contract.topics import Wire, encode_wire, table_topic
from protocols.contract.wagers import WagerAnswer, encode
from protocols.fdl import console as fdl_console, shuffler as fdl_shuffler
from rules.engine.rounds import declared
from rules.engine.ruleset import Corrected, Noted, Resolved, Suspended, Verdict, Voided
from rules.games import baccarat_coups as baccarat
from tests.rules.test_rulesets import for_every_game, game, run

BAC = "bac-12"
ROUND = f"{BAC}:2026-11-20:1:7"
FILES = [
    *sorted(Path(rules.__file__).parent.rglob("*.py")),
    Path(bet_terminals.__file__),
    Path(wagers.__file__),
]
# What a wheel says beside the names of its faults, and what a person chooses at the console.
WHEELS = {"restarted", "table_closed", "number_shown_too_early", *(error.fault.code for error in tcs_saturn.ERRORS)}
PERSONS = {*fdl_console.VOID_REASONS.values(), *fdl_console.THROW_REASONS.values()} - {""}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Each call of `say` in the rules, and where."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="say")):
                    yield f"{file.name}:{node.lineno}", node


def codes(call: ast.Call) -> set[str]:
    """The codes of a call: its first argument is text, or one of two texts."""
    match call.args:
        case [ast.Constant(value=str(code))]:
            return {code}
        case [ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=str(other)))]:
            return {one, other}
        case _:
            return set()


def names(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


# ---- all of it


@pytest.mark.parametrize("lang", words.LANGS)
def test_every_reason_of_the_rules_has_its_sentence_and_its_values(lang: words.Lang) -> None:
    catalog, count = words.catalog(lang), 0
    for place, call in calls():
        known = codes(call)
        assert known or place.startswith(("rounds.py", "cloth.py")), (
            f"{place}: say() without a code"
        )  # declared(): given, a code
        values = {keyword.arg for keyword in call.keywords}
        for code in known:
            assert f"reason.{code}" in catalog, place
            if None not in values:  # `**values`: the calls that follow prove them
                assert names(catalog[f"reason.{code}"]) == values, place
            count += 1
    assert count > 200


@pytest.mark.parametrize("lang", words.LANGS)
def test_the_sentences_of_a_code_have_the_same_values_in_every_language(lang: words.Lang) -> None:
    english, catalog = words.catalog("en"), words.catalog(lang)
    for key in (key for key in english if key.startswith("reason.")):
        assert names(catalog[key]) == names(english[key]), key


def test_no_sentence_is_left_of_a_code_that_nothing_says() -> None:
    said = {code for _, call in calls() for code in codes(call)} | WHEELS | PERSONS
    ours = {key.removeprefix("reason.") for key in words.catalog("en") if key.startswith("reason.")}
    assert ours <= said


@pytest.mark.parametrize("lang", words.LANGS)
def test_each_value_that_is_a_code_has_its_words(lang: words.Lang) -> None:
    catalog = words.catalog(lang)
    for why in (*REASONS.values(), "no_reason_told"):
        assert f"value.why_{why.replace(' ', '_')}" in catalog, why
    for where in (*fdl_shuffler.PLACES.values(), "somewhere"):
        assert f"value.where_{where}" in catalog, where
    for mode in ("lever", "electronic"):
        assert f"value.mode_{mode}" in catalog
        assert f"value.allowed_{mode}" in catalog
    acted = say("seat_hand_action", seat=3, number=1, action="five_cards")
    told = {
        "en": "seat 3 hand 1: five cards",
        "pt": "lugar 3, mão 1: cinco cartas",
        "zh-Hant": "第 3 門第 1 手：五張牌",
    }
    assert words.reason(lang, acted) == told[lang]


@pytest.mark.parametrize("lang", words.LANGS)
def test_what_a_wheel_or_a_person_gives_as_reason_is_a_sentence(lang: words.Lang) -> None:
    for code in PERSONS | {error.fault.code.removeprefix("saturn.") for error in tcs_saturn.ERRORS}:
        assert "_" not in words.reason(lang, declared(code)), code
    assert words.reason(lang, declared("a <b> fell {0.x}")) == "a <b> fell {0.x}"
    assert words.reason(lang, declared("")) == words.catalog(lang)["reason.declared"]


def test_an_irregularity_that_says_only_who_and_what_says_why() -> None:
    note = Irregularity("bet_not_offered", say("seat_bet", seat=3, bet="lucky_6"), "-")
    assert words.noted("en", note) == "seat 3 on lucky_6 (the table does not offer this bet)"
    late = Irregularity("late_bet", say("late_bet", seat=3, bet="tie"), "-")
    assert words.noted("en", late) == "seat 3 on tie after the bets were closed"
    assert words.noted("pt", Irregularity("no_such_code", say("seat_bet", seat=3, bet="tie"), "-")) == "lugar 3 em tie"


@pytest.mark.parametrize("lang", words.LANGS)
def test_a_reason_of_another_version_is_shown_too(lang: words.Lang) -> None:
    assert words.reason(lang, Reason("no_such_code", {"x": 1})) == "no such code"
    assert "?" in words.reason(lang, Reason("late_bet", {"seat": 3}))
    assert "{0.x}" in words.reason(lang, Reason("late_bet", {"seat": 3, "bet": "{0.x}"}))


def reasons(verdict: Verdict) -> Iterator[Reason]:
    """What a verdict says."""
    match verdict:
        case Suspended(reason=reason, remedy=remedy):
            yield from (reason, remedy)
        case Resolved(result=result) | Voided(result=result) | Corrected(result=result):
            yield from (one.reason for one in result.irregularities)
            if result.void is not None:
                yield result.void.reason
        case Noted(irregularity=one):
            yield one.reason
        case _:
            pass


@for_every_game
def test_whatever_a_game_says_has_its_words(name: str, night: list[Any]) -> None:
    """With exactly the values of its sentence; but for a reason that was given."""
    given_ = {declared(one.reason).code for one in night if isinstance(one, RoundVoided | SpinVoided | DiceThrown)}
    for step in run(game(name), script(night))[1]:
        for one in (one for verdict in step for one in reasons(verdict)):
            if one.code not in given_:
                assert names(words.catalog("en")[f"reason.{one.code}"]) == set(one.values), one


# ---- on the pages


REASON, REMEDY = "a card could not be read", words.reason("en", baccarat.CORRECT)
TYPED = "<i>typed by hand</i>"
PAGES = {
    "en": (
        REASON,
        "correct the deal at the console",
        "it was never completed",
        "dealing error",
        "seat 3 on lucky_6 (the table does not offer this bet)",
    ),
    "pt": (
        "uma carta não pôde ser lida",
        "corrigir a distribuição na consola",
        "nunca foi acabada",
        "erro de distribuição",
        "lugar 3 em lucky_6 (a mesa não oferece esta aposta)",
    ),
    "zh-Hant": (
        "有牌讀不到",
        "在莊荷控制台更正派牌",
        "從未完成",
        "派牌錯誤",
        "第 3 門的 lucky_6 投注（此枱不設此投注）",
    ),
}


def ended(number: int, reason: Reason, *irregularities: dict[str, Any]) -> dict[str, Any]:
    """A void round as the rules publish it."""
    return {
        "round": f"{BAC}:2026-11-20:1:{number}",
        "ruleset": "macau.baccarat",
        "edition": "2018",
        "outcome": {},
        "void": {"reason": msgspec.to_builtins(reason), "bets": "returned"},
        "irregularities": list(irregularities),
        "announcements": {"en": "Void", "pt": "Lance nulo", "zh-Hant": "此局無效"},
        "law": ["Despacho 55/2004 art. 10"],
    }


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """Three void rounds, the last with an irregularity, and one that waits for a person."""
    with opened(tmp_path, '[console.dealer]\n"bac-12" = "/run/feltd/console/bac-12.sock"') as one:
        one.begin()
        bet = {"code": "seat_bet", "values": {"seat": 3, "bet": "lucky_6"}}
        note = {"code": "bet_not_offered", "reason": bet, "law": "-", "event": "e"}
        source = table_topic("lisboa", BAC, "round")
        for number, reason in enumerate(map(declared, (TYPED, "dealing_error", "never_completed")), 1):
            raw = msgspec.Raw(msgspec.json.encode({"result": ended(number, reason, note)}))
            wire = Wire("1.0", f"edge-7:{BAC}:{number}/0", source, "voided", one.now, number, data=raw, journal="j")
            one.say(f"{source}/event/voided", encode_wire(wire))
        state = {"phase": "suspended", "round": ROUND, "detail": {"reason": {"code": "card_unreadable"}}}
        one.say(f"{source}/state", msgspec.json.encode(state))
        one.alert(BAC, "round-suspended", code="round.suspended", why=say("card_unreadable"), to_do=baccarat.CORRECT)
        one.wait(1)
        yield one


DOUBT = 'class="alert waits doubt"'


def foreign(lang: words.Lang) -> set[str]:
    """What a page in that language may not say."""
    return {text for other, said in PAGES.items() if other != lang for text in said}


@pytest.mark.parametrize("lang", words.LANGS)
async def test_a_round_that_waits_is_told_in_the_readers_language(console: Console, lang: words.Lang) -> None:
    reason, remedy, *_ = PAGES[lang]
    for name in (f"round/{BAC}", f"tile/{BAC}", "alerts"):
        html = console.house.live.html(name, Viewer(lang, "viewer"))
        assert words.sentence(reason) in html, name
        assert words.sentence(remedy) in html, name
        assert not [one for one in foreign(lang) if one in html.lower()], name
    async with console.browser("dealer", **{"accept-language": lang}) as browser:
        page = (await browser.get(f"/dealer/{BAC}")).text
    shown = re.search(r'<div class="alert waits doubt".*?</div>', page, re.DOTALL)
    assert shown is not None
    assert words.sentence(reason) in shown[0]
    assert words.sentence(remedy) in shown[0]


async def test_the_dealers_page_is_told_when_the_round_goes_on(console: Console) -> None:
    dealers = console.house.dealers
    assert "有牌讀不到" in dealers._now(dealers.units[BAC], "zh-Hant")["now"]
    console.say(
        table_topic("lisboa", BAC, "round/state"),
        msgspec.json.encode({"phase": "dealing", "round": ROUND, "detail": {}}),
    )
    assert DOUBT not in dealers._now(dealers.units[BAC], "zh-Hant")["now"]
    async with console.browser("dealer") as browser:
        page = (await browser.get(f"/dealer/{BAC}")).text
    assert DOUBT not in page


@pytest.mark.parametrize("lang", words.LANGS)
def test_the_dealers_page_says_why_a_decision_was_not_taken(console: Console, lang: words.Lang) -> None:
    detail = {"refused": "cards_do_not_allow"}
    state = {"phase": "dealing", "round": ROUND, "detail": detail}
    console.say(table_topic("lisboa", BAC, "round/state"), msgspec.json.encode(state))
    dealers = console.house.dealers
    why = {"en": "Its cards do not allow this", "pt": "As cartas não o permitem", "zh-Hant": "牌不符合此項"}[lang]
    assert f"<strong>{why}</strong>" in dealers._now(dealers.units[BAC], lang)["now"]


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("en", "console-1 · seat 3 on fan:2 (the table does not offer this bet) · art. 6"),
        ("pt", "console-1 · lugar 3 em fan:2 (a mesa não oferece esta aposta) · art. 6"),
        ("zh-Hant", "console-1 · 第 3 門的 fan:2 投注（此枱不設此投注） · art. 6"),
    ],
)
def test_the_dealers_page_says_which_bet_was_refused_and_why(console: Console, lang: words.Lang, said: str) -> None:
    reason = say("seat_bet", seat=3, bet="fan:2")
    refused = WagerAnswer("e:1", "console-1", "refused", "bet_not_offered", reason, "", "art. 6", "e:1")
    accepted = WagerAnswer("a-1", "t-1", "accepted", event="e:2")
    for one in (refused, refused, accepted):
        console.say(table_topic("lisboa", BAC, "wager/t-1/result"), encode(one))
    console.say(table_topic("lisboa", BAC, "wager/t-1/result"), b"no answer")
    dealers = console.house.dealers
    assert dealers._now(dealers.units[BAC], lang)["refusals"] == [said]


@pytest.mark.parametrize(
    ("lang", "asks"),
    [
        ("en", "closed: burn a card first"),
        ("pt", "apostas fechadas: queime primeiro uma carta"),
        ("zh-Hant", "已截止：先銷一張牌"),
    ],
)
def test_the_dealers_page_asks_for_the_card_before_a_coup(console: Console, lang: words.Lang, asks: str) -> None:
    dealers = console.house.dealers
    for following, shown in (("burn", asks), ("player", words.say(lang, "phase.closed"))):
        state = {"phase": "closed", "round": ROUND, "detail": {"next": following}}
        console.say(table_topic("lisboa", BAC, "round/state"), msgspec.json.encode(state))
        assert dealers._now(dealers.units[BAC], lang)["phase"] == shown


async def test_viewer_without_rules_sees_no_doubt(console: Console) -> None:
    console.edge("rules", online=False)
    dealers = console.house.dealers
    assert DOUBT not in dealers._now(dealers.units[BAC], "en")["now"]


@pytest.mark.parametrize("lang", words.LANGS)
async def test_a_void_round_is_told_in_the_readers_language(console: Console, lang: words.Lang) -> None:
    _, _, never, error, irregular = PAGES[lang]
    history = console.house.live.html(f"history/{BAC}", Viewer(lang, "viewer"))
    for reason in (never, error):
        assert history.lower().count(reason) == 2  # in its line, and over its chip
    result = console.house.live.html(f"result/{BAC}", Viewer(lang, "viewer"))
    async with console.browser("viewer", **{"accept-language": lang}) as browser:
        page = (await browser.get(f"/table/{BAC}/round/{BAC}:2026-11-20:1:3")).text.partition('<details id="json')[0]
    for html in (result, page):
        assert never in html
        assert words.sentence(irregular) in html
    for html in (history, result, page):
        assert not [one for one in foreign(lang) if one in html]
        assert "never_completed" not in html


@pytest.mark.parametrize("lang", words.LANGS)
async def test_irregularity_between_rounds_is_shown_in_the_language_of_the_reader(
    console: Console, lang: words.Lang
) -> None:
    """The newest first, each once though a standby says the same; what cannot be read is refused."""
    browser = Viewer(lang, "viewer")
    nothing = console.house.live.html(f"noted/{BAC}", browser)
    assert "<h2>" not in nothing
    source = table_topic("lisboa", BAC, "round")
    bell = {
        "code": "bell_without_round",
        "reason": {"code": "bell_no_round"},
        "law": "Despacho 55/2004 art. 7(1)",
    }
    typed = {"code": "x", "reason": {"code": "declared_for", "values": {"text": "<i>unheard of</i>"}}, "law": "-"}
    for journal in ("j", "standby"):
        for number, data in enumerate(({"irregularity": bell}, {"irregularity": typed}, {"irregularity": 7}), 4):
            raw = msgspec.Raw(msgspec.json.encode(data))
            wire = Wire("1.0", f"edge-7:{BAC}:{number}/0", source, "irregular", console.now, number, data=raw,
                        journal=journal)  # fmt: skip
            console.say(f"{source}/event/irregular", encode_wire(wire))
    html = console.house.live.html(f"noted/{BAC}", browser)
    rang = {"en": "the bell rang, no round is open", "pt": "a campainha tocou", "zh-Hant": "響鈴"}[lang].casefold()
    assert html.casefold().count(rang) == 1
    article = "第七條第一款" if lang == "zh-Hant" else "art. 7(1)"
    assert html.count(article) == html.count("&lt;i&gt;unheard of") == 1
    assert html.index("unheard of") < html.index(article)
    assert console.house.site.refused == 1
    async with console.browser("viewer", **{"accept-language": lang}) as one:
        assert html.splitlines()[1] in (await one.get(f"/table/{BAC}")).text


@pytest.mark.parametrize("lang", words.LANGS)
def test_a_reason_that_somebody_typed_is_text(console: Console, lang: words.Lang) -> None:
    history = console.house.live.html(f"history/{BAC}", Viewer(lang, "viewer"))
    assert "&lt;i&gt;typed by hand&lt;/i&gt;" in history
    assert TYPED not in history


# ---- duties by the clock

DUTIES = [
    {"code": "dealer_relief", "law": "art. 1(36)", "at": "2026-11-20T21:40:00Z"},
    {"code": "ball_change", "law": "art. 1(20)", "at": "2026-11-20T21:10:00Z"},
    {"code": "no_such_duty", "law": "art. 9", "at": "2026-11-20T22:00:00Z"},
]


@pytest.mark.parametrize(
    ("lang", "name"), [("en", "the change of the ball"), ("pt", "Mudança da bola"), ("zh-Hant", "更換珠子")]
)
async def test_a_table_and_its_dealer_see_what_is_due_by_the_clock(console: Console, lang: str, name: str) -> None:
    state = {"phase": "betting", "round": f"{BAC}:2026-11-20:7", "detail": {"duties": DUTIES}}
    console.say(table_topic("lisboa", BAC, "round/state"), msgspec.json.encode(state))
    html = console.house.live.html(f"round/{BAC}", Viewer(lang, "viewer"))  # type: ignore[arg-type]
    assert re.findall(r'data-due="([^"]*)">([^<]*) <', html)[0] == ("2026-11-20T21:10:00.000000Z", name)
    laws = (
        ["第一條第二十款", "第一條第三十六款", "第九條"]
        if lang == "zh-Hant"
        else ["art. 1(20)", "art. 1(36)", "art. 9"]
    )
    assert re.findall(r"</time> <span>([^<]*)</span>", html) == laws
    async with console.browser("dealer", **{"accept-language": lang}) as browser:
        page = (await browser.get(f"/dealer/{BAC}")).text
    assert re.findall(r'<li data-due="[^"]*">([^<]*) <', page)[0] == name
    now = console.house.dealers._now(console.house.dealers.units[BAC], lang)  # type: ignore[arg-type]
    assert [one["at"] for one in now["duties"]] == sorted(one["at"] for one in now["duties"])
