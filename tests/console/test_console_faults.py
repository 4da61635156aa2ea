"""The texts of the alerts in the reader's language: complete, and equal to those that the processes publish."""

import ast
import string
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from console_floor import Console, opened

from daemon.config.model import Keeping, parse
from daemon.console.fairness.charts import Alarm
from daemon.console.live import Viewer
from daemon.edge.edge import Edge
from daemon.jackpots.alerts import ALERTS
from daemon.journal import retention as keeping
from daemon.journal.store import Journal
from daemon.views import Change
from daemon.words import words
from drivers import DRIVERS
from drivers.faults import Fault, Faults
from protocols.contract.commands import COMMANDS
from protocols.contract.documents import LONGEST_ALERT, Alert
from protocols.contract.topics import device_topic, table_topic

OTHERS: list[words.Lang] = [lang for lang in words.LANGS if lang != "en"]
LISTED = [(name, fault) for name, driver in DRIVERS.items() for fault in driver.faults]
SITE = """
[site]
name = "lisboa"
[edge]
name = "edge-7"
[[table]]
name = "bac-12"
[[table.device]]
name = "shoe-1"
driver = "bee_tek_shoe"
url = "tcp://127.0.0.1:4001"
"""


def foreign(lang: words.Lang, text: str) -> bool:
    """Whether a text is one of that language's own, not the floor's English."""
    return text in set(words.catalog(lang).values()) - set(words.catalog("en").values())


# ---- the lists of the drivers


@pytest.mark.parametrize("lang", OTHERS)
def test_every_fault_of_every_driver_is_told_in_every_language(lang: words.Lang) -> None:
    """Also where two drivers say one code in different words; and the English is the driver's own, or nothing fits."""
    for driver, fault in LISTED:
        for said in (fault.text, fault.remedy, fault.round):
            assert foreign(lang, words.device_text(lang, fault.code, said)), (driver, fault.code, said)
            assert words.device_text("en", fault.code, said) == said


def test_no_key_is_left_of_a_fault_that_no_driver_has() -> None:
    """Each key is its fault's code, after its driver where drivers differ, and its English is that driver's text."""
    sayings = {(fault.code, getattr(fault, what), what) for _, fault in LISTED for what in ("text", "remedy", "round")}
    for key, text in words.catalog("en").items():
        match key.split("."):
            case ["fault", "fdl", "fault", _]:  # only a device's manual knows its code
                pass
            case ["fault", *driver, kind, name, what]:
                assert (f"{kind}.{name}", text, what) in sayings, key
                assert not driver or f"{kind}.{name}" in {fault.code for fault in DRIVERS[driver[0]].faults}, key


@pytest.mark.parametrize("lang", OTHERS)
@pytest.mark.parametrize("detail", ["place 3", "S91 (new) and (S92", ""])
def test_the_detail_of_a_fault_is_kept(lang: words.Lang, detail: str) -> None:
    for fault in (fault for _, fault in LISTED):
        (event,) = Faults([fault]).strike(fault.code, detail)
        plain = words.device_text(lang, fault.code, fault.text)
        told = words.device_text(lang, fault.code, event.text)
        assert told == (words.say(lang, "faults.detail", one=plain, more=detail) if detail else plain)
        assert detail in told


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("card.jam", "a card is stuck"),
        ("shoe.misscan", "a second card was pulled"),  # another version's words
        ("wheel.no_ball", "no ball is detected in the track, nowhere"),
        ("wheel.no_ball", "no ball is detected in the track (and no end"),
        ("shoe.misscan", "no ball is detected in the track"),  # another fault's
        ("fdl.fault_30", "fault 30"),
        ("", ""),
        ("jackpot.refused", "win x is of the seats " + 2000 * ", as the rules report"),
    ],
)
def test_untranslated_fault_is_shown_unchanged(code: str, said: str) -> None:
    for lang in get_args(words.Lang):
        assert words.device_text(lang, code, said) == said


def test_a_fault_that_only_its_manual_knows_keeps_its_number_and_place() -> None:
    fault = Fault(
        "fdl.fault_3e", "fault 3E of the device", "look it up in the device's manual", "by a person", "goes on"
    )
    (event,) = Faults([fault]).strike(fault.code, "place 2")
    assert words.device_text("pt", fault.code, event.text) == "avaria 3E do dispositivo (place 2)"
    assert words.device_text("zh-Hant", fault.code, event.text) == "裝置故障 3E（place 2）"
    assert words.device_text("pt", fault.code, event.remedy) == "procurá-la no manual do dispositivo"


# ---- alerts


@pytest.mark.parametrize("reason", ["", "no valid line for 3 s", "port (usb): gone"])
def test_a_device_that_does_not_answer(tmp_path: Path, reason: str) -> None:
    journal = Journal(tmp_path / "edge.db")
    edge = Edge(parse(SITE), journal)
    (post,) = edge.sessions
    post.status = msgspec.structs.replace(post.status, reason=reason)
    edge.show(post)
    said = edge.retained._wanted[table_topic("lisboa", "bac-12", "alert/shoe-1-device-offline")]
    journal.close()
    assert isinstance(said, bytes)
    alert = msgspec.json.decode(said, type=Alert)
    assert alert.text == f"shoe-1 does not answer: {reason or 'never seen'}"
    assert words.reason("pt", alert.why, alert.code) == f"shoe-1 não responde: {reason or 'nunca foi visto'}"
    assert words.reason("zh-Hant", alert.why, alert.code) == f"shoe-1 沒有回應：{reason or '從未出現'}"
    assert foreign("pt", words.reason("pt", alert.to_do, alert.code))


@pytest.mark.parametrize("by_disk", [True, False])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_journal_without_room(tmp_path: Path, level: int, by_disk: bool) -> None:
    journal = Journal(tmp_path / "edge.db")
    alert = keeping._alert(journal, keeping.Room(960_000_000, 1000_000_000, by_disk), Keeping(), level)
    journal.close()
    for said, one in ((alert.text, alert.why), (alert.remedy, alert.to_do)):
        told = words.reason("pt", one, alert.code)
        assert told != said
        assert ("play stops" in said) == ("o jogo para" in told)
        assert ("90 days" in said) == ("90 dias" in told)
        assert (str(journal.path) in said) == (str(journal.path) in told)
        assert words.reason("zh-Hant", one, alert.code) not in (said, told)


def test_an_alarm_of_fairness() -> None:
    values: dict[str, str | int] = {"pocket": "17", "count": 90, "due": 54, "n": 2000}
    alert = Alarm("rou-3", "wheel-1", "fairness.wheel", "fair.alarm_pocket", values).alert
    for lang in words.LANGS:
        assert words.reason(lang, alert.why, alert.code) == words.say(lang, "fair.alarm_pocket", **values)
        assert words.reason(lang, alert.to_do, alert.code) == words.say(lang, "fair.do_wheel")


@pytest.mark.parametrize("field", ["why", "to_do"])
def test_an_alert_with_values_beyond_a_text_is_unreadable(field: str) -> None:
    said = {"code": "x", "text": "", "remedy": "", field: {"code": "text", "values": {"edge": "e" * LONGEST_ALERT}}}
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(said), type=Alert)


def test_every_alert_has_its_sentence_and_a_remedy() -> None:
    """What a process says in an alert, by the source: a sentence of the catalogue, with all its values."""
    known: dict[str, list[set[str]]] = {}
    for key, text in words.catalog("en").items():
        if key.startswith(("alert.", "reason.")):
            names = {name for _, name, _, _ in string.Formatter().parse(text) if name}
            known.setdefault(key.rpartition(".")[2], []).append(names)
        if key.startswith("alert."):
            assert f"{key.rpartition('.')[0]}.remedy" in words.catalog("en"), key
    assert {f"alert.jackpot.{code}.remedy" for code in ALERTS} <= words.catalog("en").keys()
    found = 0
    for path in Path(words.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="say"), args=[ast.Constant(value=str(code))], keywords=given):
                    values = {one.arg for one in given}
                    if None not in values:  # otherwise they are those of another reason
                        assert any(names <= values for names in known.get(code, [])), (path.name, code, values)
                        found += 1
                case _:
                    pass
    assert found > 20


# ---- commands


def test_command_description_is_the_first_line_of_its_docstring() -> None:
    english = {key: text for key, text in words.catalog("en").items() if key.startswith("order.")}
    switches = {name for name, kind in COMMANDS.items() if "on" in kind.__struct_fields__}
    for name in switches:  # each of its two buttons has a description of its own
        assert english.pop(f"order.{name}.on") != english.pop(f"order.{name}.off")
    others = COMMANDS.keys() - switches
    assert english == {f"order.{name}": (COMMANDS[name].__doc__ or "").partition("\n")[0] for name in others}


# ---- on the pages


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device("rou-3", "wheel-1", "cammegh_ss2")
        (event,) = Faults(DRIVERS["cammegh_ss2"].faults).strike("wheel.no_ball", "place 3")
        fault = {"code": event.code, "text": event.text, "severity": "error", "remedy": event.remedy}
        state = msgspec.json.encode({"online": True, "faults": [{**fault, "since": one.now}]})
        one.say(device_topic("lisboa", "rou-3", "wheel-1", "state"), state)
        one.alert("rou-3", "wheel-1-wheel-no_ball", device="wheel-1", **fault)
        one.event("rou-3", "wheel-1", event)
        one.wait(1)
        yield one


@pytest.mark.parametrize(
    "name",
    [
        *("devices/rou-3", "tile/rou-3", "alerts", "alerts/worst", "alerts/table/rou-3", "alerts/device/rou-3/wheel-1"),
        *("story/rou-3/wheel-1", "devicelog/rou-3/wheel-1"),
    ],
)
@pytest.mark.parametrize(
    ("lang", "text", "remedy"),
    [
        ("en", "no ball is detected in the track (place 3)", "put the ball into the track"),
        ("pt", "não se vê nenhuma bola na pista (place 3)", "pôr a bola na pista"),
        ("zh-Hant", "珠軌內偵測不到珠子（place 3）", "把珠子放入珠軌"),
    ],
)
def test_every_place_tells_a_fault_in_the_readers_language(
    console: Console, name: str, lang: words.Lang, text: str, remedy: str
) -> None:
    html = console.house.live.html(name, Viewer(lang, "technician"))
    history = html.partition("<h2>")[2].partition("<h2>")[0]
    told_once = name.startswith(("devicelog", "story"))
    shown = history if name.startswith("devicelog") else html
    # After its device, or its code, a sentence begins small.
    assert (text if name.startswith(("tile", "devicelog")) else words.sentence(text)) in shown
    assert told_once or words.sentence(remedy) in shown
    assert (text == "no ball is detected in the track (place 3)") == ("no ball is detected" in shown.lower())


async def test_the_page_of_a_device_says_what_each_command_does(console: Console) -> None:
    async with console.browser("technician", **{"accept-language": "pt"}) as browser:
        page = (await browser.get("/table/rou-3/device/wheel-1")).text
    assert "Lançar a bola." not in page  # such a wheel launches by itself
    assert "Ligar a roda." in page
    assert "Desligar a roda." in page
    assert "Switch the wheel on" not in page


def test_a_line_of_the_history_that_is_no_fault_stands_as_it_was(console: Console) -> None:
    device = console.house.site.devices["rou-3", "wheel-1"]
    device.history.append(Change(console.now, "device.offline", "no valid line for 3 s"))
    device.history.append(Change(console.now, "device.commanded", "power · done"))
    html = console.house.live.html("devicelog/rou-3/wheel-1", Viewer("pt", "technician"))
    assert "no valid line for 3 s" in html
    assert "power · done" in html
