"""What the rules say of a round, in the reader's language: all of it, and on every page that shows it."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import rules_say
from console_floor import Console, opened
from helpers import script
from hypothesis import given

import drivers
import rules
from daemon.console.live import Viewer
from daemon.console.words import words
from drivers import tcs_saturn
from drivers.fdl_shuffler import REASONS
from protocols.contract.events import RoundVoided, SpinVoided, WagerPlaced, WagerWithdrawn
from protocols.contract.topics import Wire, encode_wire, table_topic
from protocols.fdl import console as fdl_console
from protocols.fdl import shuffler as fdl_shuffler
from rules.engine.ruleset import Corrected, Noted, Resolved, Suspended, Verdict, Voided
from rules.macau import baccarat
from tests.rules.test_rulesets import NIGHTS, every_game, game, pace, run

BAC = "bac-12"
ROUND = f"{BAC}:2026-11-20:1:7"
OTHERS: list[words.Lang] = [lang for lang in words.LANGS if lang != "en"]
SAID = rules_say.everything(sorted(Path(rules.__file__).parent.rglob("*.py")))
# What a wheel or a person at the console gives as a reason; what else stands for a whole text would be a gap.
GIVEN = {"{RoundVoided.reason}", "{SpinVoided.reason}"}
TOLD = sorted({rules_say.filled(one.text) for one in SAID if one.text not in GIVEN})
WHEELS = {
    file.stem: {one.text for one in rules_say.everything([file])}
    for file in sorted(Path(drivers.__file__).parent.glob("*.py"))
    if "SpinVoided(" in file.read_text(encoding="utf-8")
}
# The faults by whose names a Saturn voids a spin, and a doubt that ends its spin and is told of no other.
SATURN = {error.fault.code.removeprefix("saturn.") for error in tcs_saturn.ERRORS}
NEVER_TOLD = {tcs_saturn.CHANGED}
GIVEN_BY_WHEELS = sorted({*SATURN, *(text for texts in WHEELS.values() for text in texts)} - {"{}", *NEVER_TOLD})
GIVEN_BY_PERSONS = sorted(
    {*fdl_console.VOID_REASONS.values(), *fdl_console.THROW_REASONS.values(), "reason 7 of the console"} - {""}
)
FAILED = [f"the shuffler failed: {why}" for why in (*REASONS.values(), "reason 7 of the shuffler", "no reason told")]
WHERE = (*fdl_shuffler.PLACES.values(), "somewhere")
STUCK = [f"cards stuck in the shuffler: {where}" for where in WHERE]
SHAKEN = [
    "the dice were shaken by lever, authorised is electronic",
    "the dice were shaken by electronic, authorised is lever",
]
EVERY = sorted({*TOLD, *GIVEN_BY_WHEELS, *GIVEN_BY_PERSONS, *FAILED, *STUCK, *SHAKEN})


# ---- all of it


def test_what_the_rules_say_is_read_whole_from_their_text() -> None:
    """Each kind, from each module; and nothing is said that the reader of the text could not follow."""
    kinds = {kind: {one.text for one in SAID if one.kind == kind} for kind in ("reason", "remedy", "irregularity")}
    assert len(kinds["reason"]) > 80
    assert len(kinds["remedy"]) == 21
    assert len(kinds["irregularity"]) > 120
    bare = {one.text for one in SAID if re.fullmatch(r"\{[^{}]*\}", one.text)}
    assert bare == GIVEN
    assert set(WHEELS) == {"cammegh_ss2_spins", "tcs_saturn"}
    assert {name for name, texts in WHEELS.items() if "{}" in texts} == {"tcs_saturn"}  # the name of a fault


def test_a_text_that_no_reader_would_miss_is_found(tmp_path: Path) -> None:
    """Through parameters, branches, patterns, several results and texts put together."""
    source = tmp_path / "game.py"
    source.write_text(
        "WHY = 'it waits'\n"
        "def hold(round_, reason, remedy=WHY): return Suspended(round_.id, reason, remedy)\n"
        "def odd(round_, code, text): return Irregularity(code, f'{text}: odd', '-', round_.id)\n"
        "def both(n): return ('one', 'two') if n else None\n"
        "def play(round_, seen, n):\n"
        "    match seen:\n"
        "        case Voided(reason=why):\n"
        "            return Void(why or 'by hand', 'returned')\n"
        "    if n:\n"
        "        text = f'{n} cards'\n"
        "        return odd(round_, 'cards', text)\n"
        "    elif (found := both(n)):\n"
        "        code, text = found\n"
        "        return odd(round_, code, text)\n"
        "    text = 'late' if n else 'early'\n"
        "    return hold(round_, text), replace(round_, suspended=wrong())\n"
        "def wrong():\n"
        "    return 'wrong' + 'ly'\n",
        encoding="utf-8",
    )
    said = rules_say.everything([source])
    assert {(one.kind, one.text) for one in said if one.kind != "irregularity"} == {
        ("reason", "{Voided.reason}"),
        ("reason", "by hand"),
        ("reason", "late"),
        ("reason", "early"),
        ("reason", "{}"),  # it cannot be followed, and is seen
        ("remedy", "it waits"),
    }
    assert {(one.code, one.text) for one in said if one.kind == "irregularity"} == {
        ("cards", "{n} cards: odd"),
        ("one", "two: odd"),
    }


@pytest.mark.parametrize("lang", OTHERS)
def test_all_of_it_is_told_in_every_language(lang: words.Lang) -> None:
    english = set(words.catalog("en").values())
    silent = [one for one in EVERY if words.told(lang, "round", one) in {one, *english}]
    assert not silent


@pytest.mark.parametrize("lang", OTHERS)
def test_each_value_is_told_too(lang: words.Lang) -> None:
    """The numbers that stand for values are those of the English; what has words of its own has lost its English."""
    for one in TOLD:
        assert sorted(re.findall(r"\d+", words.told(lang, "round", one))) == sorted(re.findall(r"\d+", one)) or (
            lang == "zh-Hant" and "第" in words.told(lang, "round", one)  # articles in Chinese numerals
        ), one
    for one in (*FAILED, *STUCK, *SHAKEN):
        told = words.told(lang, "round", one)
        assert not any(
            word in told for word in ("lever", "electronic,", "infeed", "carousel", "jam", "reason", "wrong")
        )
    assert words.told("pt", "round", "seat 3 hand 1: five_cards") == "Lugar 3, mão 1: cinco cartas"
    assert words.told("zh-Hant", "round", "seat 3 hand 1: five_cards") == "第 3 門第 1 手：五張牌"


def test_a_reason_that_is_a_code_is_a_sentence_in_english_too() -> None:
    codes = [one for one in EVERY if re.fullmatch(r"[a-z]+(_[a-z]+)+|error|restarted", one)]
    assert len(codes) > 30
    for one in codes:
        told = words.told("en", "round", one)
        assert " " in told, one
        assert "_" not in told
    assert words.told("en", "round", "never_completed") == "it was never completed"


def test_what_is_no_code_stands_in_english_as_the_rules_say_it() -> None:
    for one in EVERY:
        if " " in one:
            assert words.told("en", "round", one) == one.replace("even_money", "even money")


def test_an_irregularity_that_says_only_who_and_what_says_why() -> None:
    """Its text alone would leave the reader to guess; where the text says it, it is said once."""
    codes = set()
    for one in SAID:
        known = words._known("round", rules_say.filled(one.text)) if one.kind == "irregularity" else None
        if known is not None and known[0].startswith("rule.seat_"):
            codes.add(one.code)
    assert {f"irregular.{code}" for code in codes} == {
        key for key in words.catalog("en") if key.startswith("irregular.")
    }
    told = words.noted("en", "bet_not_offered", "seat 3 on lucky_6")
    assert told == "seat 3 on lucky_6 (the table does not offer this bet)"
    assert words.noted("en", "late_bet", "seat 3 on tie after the bets were closed").endswith("were closed")
    assert words.noted("pt", "no_such_code", "seat 3 on tie") == "Lugar 3 em tie"


def test_no_word_is_left_of_what_nobody_says() -> None:
    said = {known[0] for one in EVERY if (known := words._known("round", one)) is not None}
    values = {"value.mode_lever", "value.mode_electronic", "value.allowed_lever", "value.allowed_electronic"}
    values |= {f"value.where_{where}" for where in WHERE}
    said |= {known[0] for why in FAILED if (known := words._known("round", why.partition(": ")[2])) is not None}
    ours = {key for key in words.catalog("en") if key.startswith(("rule.", "reason.", "value."))}
    assert ours - values == {key for key in said if key.startswith(("rule.", "reason."))}
    assert ours >= values


def texts(verdict: Verdict) -> Iterator[str]:
    """What a verdict says."""
    match verdict:
        case Suspended(reason=reason, remedy=remedy):
            yield from (reason, remedy)
        case Resolved(result=result) | Voided(result=result) | Corrected(result=result):
            yield from (one.text for one in result.irregularities)
            if result.void is not None:
                yield result.void.reason
        case Noted(irregularity=one):
            yield one.text
        case _:
            pass


@every_game
@pace
@given(night=NIGHTS)
def test_whatever_a_game_says_has_its_words(name: str, night: list[Any]) -> None:
    """But for what was given: a reason somebody typed, and bets that have no name."""
    given_ = {one.reason for one in night if isinstance(one, RoundVoided | SpinVoided)}
    bets = {one.bet for one in night if isinstance(one, WagerPlaced | WagerWithdrawn)}
    unnamed = [f" on {bet}" for bet in bets if not re.fullmatch(r"\S+", bet)]
    for step in run(game(name), script(night))[1]:
        for text in (text for verdict in step for text in texts(verdict)):
            if text not in given_ and not any(one in text for one in unnamed):
                assert words._known("round", text) is not None, text


# ---- what others say


@pytest.mark.parametrize("lang", words.LANGS)
@pytest.mark.parametrize(
    "said",
    [
        "",
        "a card fell to the floor",
        "<script>alert(1)</script>",
        "seat 3 on <b>x</b> y",
        "seat {seat} on {bet!r} and {0.__class__}",
        "no_such_code",
        "reason.never_read",
        "two counts of ",
        "\0\ud800",
        10_000 * "x",
    ],
)
def test_what_nobody_translated_stands_as_it_was_said(lang: words.Lang, said: str) -> None:
    assert words.told(lang, "round", said) == said
    assert words.noted(lang, "bet_not_offered", said) == said


def test_a_value_is_never_a_pattern() -> None:
    assert words.told("pt", "round", "seat {bet} on {0.x}") == "Lugar {bet} em {0.x}"
    assert words.noted("en", "{0.x}", "seat 3 on tie") == "seat 3 on tie"


def test_what_is_looked_up_is_bounded_and_quick() -> None:
    """Of what others may say, in time and in memory."""
    words._looked_up.cache_clear()
    began = time.process_time()
    for n in range(1000):
        for text in (f"seat {n} on " + 190 * "x ", f"{n} " + 99 * "of x " + "was seen", (f"seat{n}: " * 60)[:399]):
            assert words.told("pt", "round", text) == text
    assert time.process_time() - began < 10
    assert words._looked_up.cache_info().currsize <= words.REMEMBERED
    before = words._looked_up.cache_info().misses
    words.told("pt", "round", (words.LONGEST + 1) * "x")
    words.told("pt", (words.LONGEST + 1) * "x", "x")
    assert words._looked_up.cache_info().misses == before


# ---- on the pages


REASON, REMEDY = "a card could not be read", baccarat.CORRECT
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
        "Uma carta não pôde ser lida",
        "Corrigir a distribuição na consola",
        "Nunca foi acabada",
        "erro de distribuição",
        "Lugar 3 em lucky_6 (a mesa não oferece esta aposta)",
    ),
    "zh-Hant": (
        "有牌讀不到",
        "在莊荷控制台更正派牌",
        "從未完成",
        "派牌錯誤",
        "第 3 門的 lucky_6 投注（此枱不設此投注）",
    ),
}


def ended(number: int, reason: str, *irregularities: dict[str, str]) -> dict[str, Any]:
    """A void round as the rules publish it."""
    return {
        "round": f"{BAC}:2026-11-20:1:{number}",
        "ruleset": "macau.baccarat",
        "edition": "2018",
        "outcome": {},
        "void": {"reason": reason, "bets": "returned"},
        "irregularities": list(irregularities),
        "announcements": {"en": "Void", "pt": "Lance nulo", "zh-Hant": "此局無效"},
        "law": ["Despacho 55/2004 art. 10"],
    }


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """Three void rounds, the last with an irregularity, and one that waits for a person."""
    with opened(tmp_path, '[console.dealer]\n"bac-12" = "127.0.0.1:0"') as one:
        one.begin()
        note = {"code": "bet_not_offered", "text": "seat 3 on lucky_6", "law": "-", "event": "e"}
        source = table_topic("lisboa", BAC, "round")
        for number, reason in enumerate((TYPED, "dealing error", "never_completed"), 1):
            raw = msgspec.Raw(msgspec.json.encode({"result": ended(number, reason, note)}))
            wire = Wire("1.0", f"edge-7:{BAC}:{number}/0", source, "voided", one.now, number, data=raw, journal="j")
            one.say(f"{source}/event/voided", encode_wire(wire))
        state = {"phase": "suspended", "round": ROUND, "detail": {"reason": REASON}}
        one.say(f"{source}/state", msgspec.json.encode(state))
        one.alert(BAC, "round-suspended", code="round.suspended", text=REASON, remedy=REMEDY)
        one.wait(1)
        yield one


def foreign(lang: words.Lang) -> set[str]:
    """What a page in that language may not say."""
    return {text for other, said in PAGES.items() if other != lang for text in said}


@pytest.mark.parametrize("lang", words.LANGS)
async def test_a_round_that_waits_is_told_in_the_readers_language(console: Console, lang: words.Lang) -> None:
    reason, remedy, *_ = PAGES[lang]
    for name in (f"round/{BAC}", f"tile/{BAC}", "alerts"):
        html = console.house.live.html(name, Viewer(lang, "viewer"))
        assert reason in html, name
        assert remedy in html, name
        assert not [one for one in foreign(lang) if one in html], name
    async with console.browser("dealer", **{"accept-language": lang}) as browser:
        page = (await browser.get(f"/dealer/{BAC}")).text
    shown = re.search(r"<p[^>]* data-doubt>.*?</p>", page)
    assert shown is not None
    assert reason in shown[0]
    assert remedy in shown[0]


async def test_the_dealers_page_is_told_when_the_round_goes_on(console: Console) -> None:
    dealers = console.house.dealers
    assert dealers._now(dealers.units[BAC], "zh-Hant")["why"] == "有牌讀不到"
    console.say(
        table_topic("lisboa", BAC, "round/state"),
        msgspec.json.encode({"phase": "dealing", "round": ROUND, "detail": {}}),
    )
    now = dealers._now(dealers.units[BAC], "zh-Hant")
    assert (now["why"], now["remedy"]) == ("", "")
    async with console.browser("dealer") as browser:
        page = (await browser.get(f"/dealer/{BAC}")).text
    assert re.search(r"<p[^>]* data-doubt hidden>", page)


@pytest.mark.parametrize("lang", words.LANGS)
def test_the_dealers_page_says_why_a_decision_was_not_taken(console: Console, lang: words.Lang) -> None:
    detail = {"refused": "cards_do_not_allow"}
    state = {"phase": "dealing", "round": ROUND, "detail": detail}
    console.say(table_topic("lisboa", BAC, "round/state"), msgspec.json.encode(state))
    dealers = console.house.dealers
    why = {"en": "its cards do not allow this", "pt": "as cartas não o permitem", "zh-Hant": "牌不符合此項"}[lang]
    assert dealers._now(dealers.units[BAC], lang)["why"] == why


async def test_who_does_not_hear_the_rules_is_told_of_no_doubt(console: Console) -> None:
    console.edge("rules", online=False)
    dealers = console.house.dealers
    assert dealers._now(dealers.units[BAC], "en")["why"] == ""


@pytest.mark.parametrize("lang", words.LANGS)
async def test_a_void_round_is_told_in_the_readers_language(console: Console, lang: words.Lang) -> None:
    _, _, never, error, irregular = PAGES[lang]
    history = console.house.live.html(f"history/{BAC}", Viewer(lang, "viewer"))
    for reason in (never, error):
        assert history.count(reason) == 2  # in its line, and over its chip
    result = console.house.live.html(f"result/{BAC}", Viewer(lang, "viewer"))
    async with console.browser("viewer", **{"accept-language": lang}) as browser:
        page = (await browser.get(f"/table/{BAC}/round/{BAC}:2026-11-20:1:3")).text.partition('<details id="json')[0]
    for html in (result, page):
        assert never in html
        assert irregular in html
    for html in (history, result, page):
        assert not [one for one in foreign(lang) if one in html]
        assert "never_completed" not in html


@pytest.mark.parametrize("lang", words.LANGS)
async def test_what_was_irregular_between_two_rounds_is_told_in_the_readers_language(
    console: Console, lang: words.Lang
) -> None:
    """The newest first, each once though a standby says the same; what cannot be read is refused."""
    browser = Viewer(lang, "viewer")
    nothing = console.house.live.html(f"noted/{BAC}", browser)
    assert "<h2>" not in nothing
    source = table_topic("lisboa", BAC, "round")
    bell = {
        "code": "bell_without_round",
        "text": "the bell rang, no round is open",
        "law": "Despacho 55/2004 art. 7(1)",
    }
    typed = {"code": "x", "text": "<i>unheard of</i>", "law": "-"}
    for journal in ("j", "standby"):
        for number, data in enumerate(({"irregularity": bell}, {"irregularity": typed}, {"irregularity": 7}), 4):
            raw = msgspec.Raw(msgspec.json.encode(data))
            wire = Wire("1.0", f"edge-7:{BAC}:{number}/0", source, "irregular", console.now, number, data=raw,
                        journal=journal)  # fmt: skip
            console.say(f"{source}/event/irregular", encode_wire(wire))
    html = console.house.live.html(f"noted/{BAC}", browser)
    rang = {"en": "the bell rang, no round is open", "pt": "a campainha tocou", "zh-Hant": "響鐘"}[lang].casefold()
    assert html.casefold().count(rang) == 1
    assert html.count("art. 7(1)") == html.count("&lt;i&gt;unheard of") == 1
    assert html.index("unheard of") < html.index("art. 7(1)")
    assert console.house.site.refused == 1
    async with console.browser("viewer", **{"accept-language": lang}) as one:
        assert html.splitlines()[0] in (await one.get(f"/table/{BAC}")).text


@pytest.mark.parametrize("lang", words.LANGS)
def test_a_reason_that_somebody_typed_is_text(console: Console, lang: words.Lang) -> None:
    history = console.house.live.html(f"history/{BAC}", Viewer(lang, "viewer"))
    assert "&lt;i&gt;typed by hand&lt;/i&gt;" in history
    assert TYPED not in history
