"""The texts of the law: every article that a verdict can name leads to its paragraph."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus
import msgspec
import pytest
from console_floor import Console, opened
from helpers import MACHINES, at_length

from daemon.console import articles
from daemon.console.articles import Cited, cited, text_of
from daemon.words.words import LANGS
from protocols.contract.topics import Wire, encode_wire, table_topic
from rules import RULESETS

ROOT = Path(__file__).parents[2]
LAWS = [name for name in sorted(RULESETS) if text_of(name) is not None]
"""The games that are played by a law."""
every_game = pytest.mark.parametrize("name", LAWS)
# An article with its paragraph, as the rules write it: 9(3)(2), 1(27)a)i, 13(1)(4)(4) A(vi).
WRITTEN = re.compile(r"\d+(\((\d+|[a-z]+)\))+([a-z]\)?[ivx]*)?( [A-C]\([ivx]+\))?")


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        yield one


def laws(said: Any) -> Iterator[str]:
    """Every `law` in a document."""
    match said:
        case dict():
            for key, value in said.items():
                yield from [value] if key == "law" and isinstance(value, str) else laws(value)
                if key == "law" and isinstance(value, list):
                    yield from value
        case list():
            for one in said:
                yield from laws(one)


@every_game
def test_every_article_that_a_verdict_names_has_its_paragraph(name: str, tmp_path: Path) -> None:
    for _, options, events in corpus.tables([name]):
        corpus.play(name, options, at_length(min(events, 150), events), tmp_path)
    named = {
        law
        for file in tmp_path.iterdir()
        for line in file.read_bytes().splitlines()
        for law in laws(msgspec.json.decode(line))
    }
    assert len(named) > (4 if name == MACHINES else 6)
    assert [law for law in named - {"-"} if not all(one.anchor for one in cited(name, law))] == []


@every_game
def test_every_article_in_the_code_of_a_game_has_its_paragraph(name: str) -> None:
    text = text_of(name)
    assert text is not None
    place, _, game = name.replace("-", "_").partition(".")
    files = [*(ROOT / "rules" / place).glob(f"{game}*.py")]
    if game == "baccarat" and place == "angola":
        files = [ROOT / "rules/angola/baccarat.py"]
    assert files
    written = {
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and WRITTEN.fullmatch(node.value)
    }
    found = articles.anchors(name)
    within = articles.numbers_of(text.within)
    for one in written:
        numbers = articles.numbers_of(one)
        places = [
            articles.anchor(act.edition, more) for act in text.publication for more in (numbers, within + numbers)
        ]
        assert found.intersection(places), one


@every_game
def test_the_publications_of_a_text_are_those_of_its_ruleset(name: str) -> None:
    text = text_of(name)
    assert text is not None
    for act in text.publication:
        number = act.act.split()[-1]
        assert number in RULESETS[name].law
        assert number in act.title
    assert {one.edition for one in text.publication} == {
        key.rpartition(":")[0] for key in (*text.articles, *text.not_ours)
    }


@pytest.mark.parametrize(
    ("ruleset", "law", "pieces"),
    [
        ("macau.baccarat", "Despacho 55/2004 art. 9(3)(2)", ["art-9-3-2"]),
        ("macau.baccarat", "Despacho 55/2004 art. 13(1)(4)(4) A(v), art. 17(8)", ["art-13-1-4-4-A-v", "art-17-8"]),
        ("macau.blackjack", "Despacho 56/2004 art. 13(3) (42/2007)", ["e2004-13-3"]),
        ("macau.roulette", "Despacho 60/2004 art. 2(2)-(3)", ["art-2-2"]),
        ("angola.craps", "Decreto Executivo 261/22 art. 4(10)c)", ["art-4-10-c"]),
        ("angola.craps", "Decreto Executivo 261/22 art. 4", ["art-4"]),
        ("macau.baccarat", "Despacho 55/2004 art. 99", [""]),
        ("macau.baccarat", "Despacho 99/2004 art. 9", [""]),
        ("macau.baccarat", "-", [""]),
        ("macau.chess", "Despacho 55/2004 art. 9", [""]),
        ("../../etc/passwd", "Despacho 55/2004 art. 9", [""]),
        ("macau.baccarat", "Despacho 55/2004 art. " + "9" * 500, [""]),
    ],
)
def test_where_a_citation_leads(ruleset: str, law: str, pieces: list[str]) -> None:
    found = cited(ruleset, law)
    assert [one.anchor for one in found] == pieces
    assert ", ".join(one.text for one in found) == law


def test_a_range_has_an_anchor_for_each_of_its_paragraphs() -> None:
    assert {"art-17-6", "art-17-12", "art-13-4", "art-13-5", "art-13-6"} <= articles.anchors("macau.baccarat")


# ---- the pages


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", LAWS)
async def test_a_page_has_every_anchor_once_and_marks_english_as_such(console: Console, name: str, lang: str) -> None:
    async with console.browser("viewer", **{"accept-language": lang}) as browser:
        page = (await browser.get(f"/law/{name}")).text
    ids = re.findall(r' id="((?:art|e\d+)-[^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(ids) == articles.anchors(name)
    text = text_of(name)
    assert text is not None
    assert page.count('<td lang="en">') == len(text.articles) + len(text.not_ours)
    for act in text.publication:
        shown = act.title_zh if lang == "zh-Hant" and act.title_zh else act.title
        assert shown in page
        assert act.gazette in page
    assert not re.search(r"[> ]\d{4}-\d\d-\d\d<", page), "dates are written as the language writes them"


async def test_the_list_leads_to_every_text(console: Console) -> None:
    async with console.browser("inspector") as browser:
        page = (await browser.get("/law")).text
        assert [(await browser.get(f"/law/{name}")).status_code for name in ("macau.chess", "..%2fx", "x" * 999)] == [
            *[404] * 3
        ]
    assert re.findall(r'href="/law/([^"]+)"', page) == LAWS


async def test_the_articles_of_a_result_lead_to_their_text(console: Console) -> None:
    law = ["Despacho 60/2004 art. 5(1)", "Despacho 60/2004 art. 6 and a half"]
    irregular = [{"code": "late", "reason": {"code": "late", "values": {}}, "law": "Despacho 60/2004 art. 4"}]
    result = {"round": "rou-3:1", "ruleset": "macau.roulette", "law": law, "irregularities": irregular}
    source, data = table_topic("lisboa", "rou-3", "round"), msgspec.Raw(msgspec.json.encode({"result": result}))
    wire = Wire("1.0", "rules:rou-3:1", source, "resolved", console.now, 1, data=data, journal="j")
    console.say(f"{source}/event/resolved", encode_wire(wire))
    async with console.browser("viewer") as browser:
        pages = [(await browser.get(path)).text for path in ("/table/rou-3", "/table/rou-3/round/rou-3:1")]
    for page in pages:
        assert '<a class="badge" href="/law/macau.roulette#art-5-1">Despacho 60/2004 art. 5(1)</a>' in page
        assert '<span class="badge">Despacho 60/2004 art. 6 and a half</span>' in page
        assert '<a href="/law/macau.roulette#art-4">Despacho 60/2004 art. 4</a>' in page


def test_a_cited_piece_is_a_value() -> None:
    assert cited("macau.fantan", "Despacho 58/2004 art. 4") == (Cited("Despacho 58/2004 art. 4", "art-4"),)
