"""No English sentence is left on a Portuguese or Chinese page; every page of a floor with many faults is read."""

import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import msgspec
import pytest
from console_floor import Console
from console_tour import fragments
from helpers import NIGHTLY, at_length
from starlette.routing import Mount, Route

from daemon.console.auth.users import Role
from daemon.words import words
from drivers import DRIVERS
from protocols.contract.events import CardDrawn
from protocols.contract.reasons import Reason
from protocols.contract.topics import Wire, device_topic, encode_wire, table_topic
from rules import RULESETS

pytestmark = pytest.mark.timeout(600)  # it reads hundreds of pages
OTHERS: list[words.Lang] = [lang for lang in words.LANGS if lang != "en"]
SCRIPTS = Path(__file__).parents[1] / "scripts"
# English words of grammar that neither Portuguese nor the names of our floor have.
GRAMMAR = re.compile(
    r"(?<![\w./:@\"-])(?:the|is|are|was|were|of|and|with|not|by|has|have|it|its|this|that|from|which|than|been|will|must|"
    r"cannot|does|nothing|nobody|never|until|while|after|before|without)(?![\w./:@\"-])",
    re.IGNORECASE,
)
HIDDEN = {"script", "style", "code", "pre", "template", "svg"}
SEEN = ("title", "aria-label", "placeholder", "alt", "data-sure", "data-shown", "data-hidden", "data-on", "data-off")
# Products, formats and what has no other name.
# Letters of results and words that two languages share.
SHORT = 3
NAMES = {"feltd", "English", "JSON", "CSV", "supervisor", "inspector", "manager", "administrator"}
"""Proper names; the users of these tests are called by their roles, and the log of actions names who exported."""


class Page(HTMLParser):
    """The texts that a person reads or hears, without what is marked as data or as another language."""

    def __init__(self, lang: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._lang = lang
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        void = tag in ("input", "br", "meta", "link", "use", "hr", "img", "col", "path", "circle", "rect", "line")
        marked = tag in HIDDEN and tag != "svg"
        marked = marked or "wire" in (given.get("class") or "").split() or given.get("translate") == "no"
        marked = marked or (given.get("lang") or self._lang) != self._lang
        if not (self._hidden or marked):
            self.texts += [text for name in SEEN if (text := given.get(name))]
        if not void and (self._hidden or marked):
            self._hidden.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and tag in self._hidden:
            while self._hidden.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not self._hidden:
            self.texts.append(text)


@cache
def translated(lang: words.Lang) -> set[str]:
    """English texts that are other ones in the language."""
    english, other = words.catalog("en"), words.catalog(lang)
    own = set(other.values())
    return {text for key, text in english.items() if other[key] != text and text not in own and "{" not in text}


def english_left(lang: words.Lang, html: str) -> Iterator[str]:
    """What is English on a page."""
    known = translated(lang)
    page = Page(lang)
    page.feed(html)
    for text in page.texts:
        if text not in NAMES and text in known and (" " in text or len(text) > SHORT):
            yield f"{text!r} has a translation"
        elif "`" in text:
            yield f"{text!r} has a raw backtick"
        elif lang == "zh-Hant" and re.search(r"[\u4e00-\u9fff]: ?$|[\u4e00-\u9fff]: ?[\u4e00-\u9fff]", text):
            yield f"{text!r} has a half-width colon"
        elif lang == "zh-Hant" and re.search(r"。 [\u4e00-\u9fff]|(^|[\u4e00-\u9fff])\.( ?[\u4e00-\u9fff]|$)", text):
            yield f"{text!r} has a space after a full stop, or a half-width one"
        elif lang == "zh-Hant" and "shooter" in text:
            continue  # craps is a game of Angola alone: its ruleset announces in Portuguese and English
        elif found := GRAMMAR.search(text):
            yield f"{text!r} has {found[0]!r}"


def test_english_is_found_where_people_read() -> None:
    page = '<p title="Open alerts">Nada</p><code>it is of the wire</code><p lang="en">it is</p><p>falta of</p>'
    assert list(english_left("pt", page)) == ["'Open alerts' has a translation", "'falta of' has 'of'"]


# ---- a floor on which much goes wrong


# A free text: what a person typed, as at a dealer's console that sends no code.
TYPED = re.compile(r'\{"code":"declared_for","values":\{"text":"[^"]*"\}\}')
SUSPENDED = Reason("card_unreadable", {})
TABLES = {f"mesa-{n}": ruleset for n, ruleset in enumerate(sorted(RULESETS), 1)}


def config() -> str:
    """A table for each game; the devices of all drivers stand at the first one."""
    dealers = "".join(f'{name} = "/run/feltd/console/{name}.sock"\n' for name in TABLES)
    text = (
        '[site]\nname = "lisboa"\n[edge]\nname = "edge-7"\n[rules]\nname = "rules"\n[console]\n{console}\n'
        f"[console.dealer]\n{dealers}"
    )
    for name, ruleset in TABLES.items():
        text += f'[[table]]\nname = "{name}"\nruleset = "{ruleset}"\narea = "Norte"\n'
    text += '[ledger]\nreports = "host=/nowhere"\n'
    return text + '[[jackpot]]\nname = "ouro"\ntables = ["mesa-1"]\nseed = 200\nvisible = "0.5"\n'


def outcomes() -> dict[str, list[dict[str, object]]]:
    """Results of each game, as the hand-checked scripts expect them; one of each kind of outcome."""
    found: dict[str, list[dict[str, object]]] = {}
    for file in sorted(SCRIPTS.glob("*.expected.ndjson")):
        for line in file.read_text(encoding="utf-8").splitlines()[: at_length(3, 12)]:
            result = json.loads(TYPED.sub('{"code":"declared"}', line))
            found.setdefault(result["ruleset"], []).append(result)
    return found


def play(console: Console) -> None:
    """Rounds of every game, one of them suspended, with every reason as a remark."""
    results = outcomes()
    for table, ruleset in TABLES.items():
        source = table_topic("lisboa", table, "round")
        for number, result in enumerate(results.get(ruleset, ()), 1):
            raw = msgspec.Raw(json.dumps({"result": {**result, "round": f"{table}:{number}"}}).encode())
            wire = Wire(
                "1.0", f"edge-7:{table}:{number}/0", source, "resolved", console.now, number, data=raw, journal="j"
            )
            console.say(f"{source}/event/resolved", encode_wire(wire))
        state = {
            "phase": "suspended",
            "round": f"{table}:99",
            "detail": {"reason": msgspec.to_builtins(SUSPENDED)},
        }
        console.say(table_topic("lisboa", table, "round/state"), json.dumps(state).encode())
        console.alert(table, "round-suspended", code="round.suspended", why=SUSPENDED)


def break_devices(console: Console) -> None:
    """Every driver's device at the first table, with all faults of its list; the last ones do not answer."""
    for n, (driver, known) in enumerate(DRIVERS.items()):
        name = f"aparelho-{n}"
        console.device("mesa-1", name, driver, online=n % 5 != 0)
        faults = [
            {
                "code": one.code,
                "severity": one.severity,
                "text": one.text,
                "remedy": one.remedy,
                "since": str(console.now),
            }
            for one in known.faults
        ]
        topic = device_topic("lisboa", "mesa-1", name, "state")
        console.say(topic, json.dumps({"faults": faults, "reason": "", "counters": {"events": 1}}).encode())
        for fault in faults:
            console.alert("mesa-1", f"{name}-{fault['code'].replace('.', '-')}", device=name, **fault)
        console.event("mesa-1", name, CardDrawn("AS"))
    for code in ("device.offline",):
        console.alert(
            "mesa-1",
            "aparelho-0-x",
            device="aparelho-0",
            code=code,
            text="aparelho-0 does not answer: never seen",
            remedy="",
        )


@pytest.fixture(scope="module")
def floor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    console = Console(tmp_path_factory.mktemp("floor"), "styleguide = false", config())
    console.begin()
    play(console)
    break_devices(console)
    console.wait(1)
    console.edge(online=False)
    console.wait(60)
    now = console.now
    console.house.incidents.silence("mesa-2", "", "", now.replace(hour=23), "ines", "x", now)
    yield console
    console.house.close()
    console.store.close()
    console.journal.close()


DATA = {"/alerts.csv", "/actions.csv", "/alerts/report.csv", "/alerts/report.json", "/metrics", "/healthz", "/readyz"}
DATA |= {"/devices.csv", "/favicon.ico", "/bundle", "/live", "/table/{table}/device/{device}/trace/text"}
DATA |= {"/table/{table}/device/{device}/trace/stream", "/dealer/{table}/stream"}


def paths(console: Console, *, every: bool) -> Iterator[str]:
    """Every page that is looked at by GET, by the routes; a new route must be filled in here or is data.

    `every`: of every table, device, round and game; else of the first one.
    """
    site = console.house.site
    most = None if every else 1
    tables = list(TABLES)[:most]
    devices = [name for table, name in site.devices if table == "mesa-1"][:most]
    rounds = [(table, result.round) for table in tables for result in list(site.tables[table].results)]
    for route in console.app.routes:
        if isinstance(route, Mount) or not isinstance(route, Route) or "GET" not in (route.methods or ()):
            continue
        match route.path:
            case path if path in DATA or path.startswith("/static/"):
                continue
            case path if "{device}" in path:
                yield from (path.replace("{table}", "mesa-1").replace("{device}", device) for device in devices)
            case "/table/{table}/round/{round:path}":
                yield from (f"/table/{table}/round/{quote(name)}" for table, name in rounds)
            case path if "{table}" in path:
                yield from (path.replace("{table}", table) for table in tables)
            case path if "{pool}" in path:
                yield path.replace("{pool}", "ouro")
            case path if "{ruleset}" in path:
                yield from (path.replace("{ruleset}", ruleset) for ruleset in list(TABLES.values())[:most])
            case "/tables/{act}" | "/tables/draft/{id}":
                yield route.path.replace("{act}", "add").replace("{id}", "0")
            case path:
                assert "{" not in path, f"{path}: fill in its values"
                yield path


ROLES: tuple[Role, ...] = ("supervisor", "inspector", "technician", "dealer", "manager", "administrator")


@pytest.mark.parametrize("lang", OTHERS)
async def test_no_english_is_left_on_any_page(floor: Console, lang: words.Lang) -> None:
    left: dict[str, str] = {}
    seen = 0

    async def read(answer: httpx.Response, where: str) -> None:
        for one in english_left(lang, answer.text):
            left.setdefault(one, where)

    for role in ROLES:
        async with floor.browser(role, **{"accept-language": str(lang)}) as browser:
            for path in paths(floor, every=role == "supervisor"):
                answer = await browser.get(path)
                seen += answer.status_code == 200
                await read(answer, f"{role} {path}")
    async with floor.browser(None, **{"accept-language": str(lang)}) as browser:
        await read(await browser.get("/login"), "/login")
        await read(await browser.post("/login", data={"name": "x", "password": "y"}), "login refused")
    assert seen > 100
    assert not left, "\n".join(f"{where}: {one}" for one, where in left.items())


# Names of our floor, of people, processes, devices, events and games; examples; currencies; places of a law.
DATA_WORDS = re.compile(
    r"(?:mesa|aparelho)-\d+|\w+@lisboa|ines: x|lisboa|feltd|edge-7|Norte|http://pit\.test\S*|\b(?:AOA|MOP)\b|"
    rf"card\.drawn|Decreto Executivo \S+(?: art\. \S+)?|\d\S*\)[ivx]+|rou-4|minimum = 50|"
    rf"{'|'.join(sorted([*DRIVERS, *RULESETS], reverse=True))}"
)
# Words that are the same in these languages, and the names of processes.
SAME = {"Blackjack/21", "Craps", "Fantan", "Hold'em", "Omaha", "Jackpots", "Rotor", "Zero", "zero", "Firmware", "Drop"}
SAME |= {"Menu", "Bytes", "supervisor", "CSV", "JSON", "PDF", "ASCII", "seq", "rules", "jackpots", "test"}
SAME |= {"Angola", "Macau"}


@pytest.mark.parametrize("lang", OTHERS)
async def test_no_text_is_the_english_one(floor: Console, lang: words.Lang) -> None:
    """Each page is compared with the English one: this finds values that no catalogue has."""
    left: dict[str, str] = {}
    compared = 0
    for role in ROLES:
        seen: dict[str, list[set[str]]] = {}
        for one in ("en", lang):
            async with floor.browser(role, **{"accept-language": str(one)}) as browser:
                for path in paths(floor, every=NIGHTLY and role == "supervisor"):
                    answer = await browser.get(path)
                    if answer.status_code == 200 and answer.headers["content-type"].startswith("text/html"):
                        page = Page(one)
                        page.feed(answer.text)
                        seen.setdefault(path, []).append(set(page.texts))
        for path, (english, own) in seen.items():
            compared += 1
            for text in english & own:
                rest = DATA_WORDS.sub("", text).strip(" ·:")
                if rest not in SAME and re.search("[A-Za-z]{3}", rest):
                    left.setdefault(text, f"{role} {path}")
    assert compared > 100
    assert not left, "\n".join(f"{where}: {one!r}" for one, where in left.items())


@pytest.mark.parametrize("lang", OTHERS)
async def test_no_english_is_left_in_refusals(floor: Console, lang: words.Lang) -> None:
    posts = [
        ("/alerts/silence", {"table": "mesa-9999", "why": "x", "minutes": "30"}),
        ("/alerts/silence", {"table": "mesa-1", "device": "nada", "why": "x", "minutes": "30"}),
        ("/alerts/silence", {"table": "mesa-1", "why": "", "minutes": "30"}),
        ("/alerts/silence", {"why": "x", "minutes": "30"}),
        ("/alerts/1/acknowledge", {}),
        ("/alerts/999999/acknowledge", {}),
        ("/alerts/1/step/at_table", {}),
        ("/alerts/1/close", {}),
        ("/users", {"do": "add", "name": "X Y", "role": "viewer", "password": "short"}),
        ("/users", {"do": "remove", "name": "nada"}),
        ("/users", {}),
        ("/tokens", {"do": "add", "name": ""}),
        ("/account", {"old": "a", "new": "b", "again": "c"}),
        ("/table/mesa-1/device/aparelho-1/command/self-test", {}),
        ("/table/mesa-1/device/aparelho-1/command/nada", {}),
        ("/table/mesa-1/decide/void", {}),
        ("/table/mesa-1/decide/correct", {"faces": "x"}),
        ("/table/mesa-1/fairness", {}),
        ("/jackpots/ouro/order/adjust", {"account": "hidden", "amount": "1,2,3", "reason": ""}),
        ("/preferences", {"lang": "xx"}),
        ("/bundle", {}),
    ]
    gets = [
        "/nada",
        "/table/nada",
        "/table/mesa-1/device/nada",
        "/table/mesa-1/round/nada",
        "/actions?from=x",
        "/law/nada",
    ]
    left: dict[str, str] = {}
    for role in ("supervisor", "technician"):
        async with floor.browser(role, **{"accept-language": str(lang)}) as browser:
            answers = [(path, await browser.post(path, data=form)) for path, form in posts]
            answers += [(path, await browser.get(path)) for path in gets]
            answers.append(("cut", await browser.post("/alerts/silence", content=b"%ff=%ff")))
            answers.append(("strange", await browser.post("/users", data={}, headers={"origin": "http://evil.test"})))
            for path, answer in answers:
                for one in english_left(lang, answer.text):
                    left.setdefault(one, f"{role} {path} {answer.status_code}")
    assert not left, "\n".join(f"{where}: {one}" for one, where in left.items())


@pytest.mark.parametrize("lang", OTHERS)
def test_no_english_is_left_in_fragments(floor: Console, lang: words.Lang) -> None:
    """Also while the broker is lost."""
    from daemon.console.live import Viewer

    viewer = Viewer(lang, "supervisor", name="sup")
    floor.lose()
    try:
        left = {
            one: name
            for name in fragments(floor.house)
            for one in english_left(lang, floor.house.live.html(name, viewer))
        }
    finally:
        floor.connect()
    assert not left, "\n".join(f"{where}: {one}" for one, where in left.items())


@pytest.mark.parametrize("lang", OTHERS)
def test_every_reason_has_a_sentence_of_its_own_language(lang: words.Lang) -> None:
    left = {
        key: one
        for key, text in words.catalog("en").items()
        if key.startswith("reason.")
        for one in english_left(lang, words.reason(lang, Reason(key.removeprefix("reason."), {})))
    }
    assert not left
