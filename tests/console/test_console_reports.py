"""Reports of rounds as PDF, CSV and JSON: what they hold, by whom, and digests that the journal says again."""

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import T0, Console, opened

from daemon.console import paper
from daemon.console.pages import exports
from daemon.console.paper import Busy, Facts, Heading, Lines, NotMade, Paper, Rows, Text
from daemon.console.reports import COLUMNS, Period, Printer, Round as RoundReport
from daemon.console.site.actions import read_actions
from daemon.words.local import Local
from protocols.contract.payouts import payout_order
from protocols.contract.results import RoundState
from protocols.contract.topics import Wire, encode_wire, table_topic

typesetting = pytest.importorskip("daemon.console.typesetting", reason="reportlab is not installed")

ROU = "rou-3"
VOID = {"reason": {"code": "no_launch", "values": {"pocket": "2"}}, "bets": "returned"}
PERIOD = {"from": "2026-11-19T00:00", "to": "2026-11-22T00:00"}
PRINTER = Printer(Local("en", UTC))
FIRST = f"{ROU}:2026-11-20:1"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        yield one


def ended(console: Console, seq: int, kind: str = "resolved", *, number: int = 0, **more: Any) -> bytes:
    """A round ends; the data of its verdict."""
    result = {
        "round": f"{ROU}:2026-11-20:{number or seq}",
        "ruleset": "macau.roulette",
        "outcome": {"pocket": "2", "colour": "red"},
        "winners": [{"bet": "straight:2", "pays": "35"}],
        "announcements": {"en": "two, red", "pt": "dois, vermelho, não ímpar", "zh-Hant": "2號,紅"},
        "law": ["Despacho 60/2004 art. 5(1)"],
        "evidence": [f"edge-7:{ROU}:{seq}"],
        **more,
    }
    source, data = table_topic("lisboa", ROU, "round"), msgspec.json.encode({"result": result})
    at = T0 + timedelta(minutes=seq)
    wire = Wire("1.0", f"edge-7:{ROU}:{seq}/0", source, kind, at, seq, data=msgspec.Raw(data), journal="j")
    console.say(f"{source}/event/{kind}", encode_wire(wire))
    return data


def evening(console: Console) -> list[bytes]:
    """Three rounds: resolved and corrected, void, resolved; an alert, and two people at work."""
    console.alert(ROU, "jam", code="wheel.jam", device="wheel-1", text="the ball is stuck")
    data = [ended(console, 1), ended(console, 2, void=VOID), ended(console, 3)]
    console.now = T0 + timedelta(minutes=4)
    console.house.actions.note("sam", "supervisor", "table.correct", ROU, {"round": FIRST, "why": "misread"})
    return [*data, ended(console, 4, "corrected", number=1, supersedes=FIRST, outcome={"pocket": "17"})]


def text_of(pdf: bytes, folder: Path) -> str:
    """As a reader's program finds it."""
    (folder / "report.pdf").write_bytes(pdf)
    done = subprocess.run(
        ["pdftotext", "-layout", str(folder / "report.pdf"), "-"], capture_output=True, text=True, check=True
    )
    return done.stdout


def shell(command: str, folder: Path) -> str:
    """What a command of the manual prints."""
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout


needs_poppler = pytest.mark.skipif(
    shutil.which("pdftotext") is None or not Path("/usr/share/poppler/cMap").is_dir(),
    reason="poppler-utils and poppler-data are not installed",
)


# ---- files


async def test_a_period_as_csv_and_json_agrees_with_the_verdicts(console: Console) -> None:
    first, second, third, corrected = evening(console)
    digests = [sha256(data).hexdigest() for data in (corrected, second, third)]
    async with console.browser("inspector") as browser:
        table = await browser.get(f"/table/{ROU}/rounds.csv", params=PERIOD)
        report = (await browser.get(f"/table/{ROU}/rounds.json", params=PERIOD)).json()
    head, *rows = csv.reader(io.StringIO(table.text.removeprefix("\ufeff")))
    assert tuple(head) == COLUMNS
    found = [dict(zip(head, row, strict=True)) for row in rows]
    gaps = [(row["result"], row["ended"]) for row in found if not row["digest"]]
    assert gaps == [("gap", "2026-11-19T00:00:00+00:00")]
    found = found[:3]
    assert [row["round"][-1] for row in found] == ["1", "2", "3"]
    assert [row["result"] for row in found] == ["resolved", "void", "resolved"]
    assert [row["digest"] for row in found] == digests == [row["digest"] for row in report["rounds"]]
    assert found[0]["corrected"] == "2026-11-20T20:04:00+00:00"
    assert sha256(first).hexdigest() not in table.text
    assert report["digest"] == sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()
    assert report["counts"] == {"all": 3, "resolved": 2, "void": 1, "suspended": 0, "corrected": 1, "refused": 0}
    assert report["made"]["by"] == "inspector@lisboa"
    assert [(act["user"], act["action"]) for act in report["acts"]] == [("sam", "table.correct")]
    assert [alert["code"] for alert in report["alerts"]] == ["wheel.jam"]
    assert not report["cut"]


async def test_the_documented_command_computes_the_digest_from_the_csv(console: Console, tmp_path: Path) -> None:
    evening(console)
    async with console.browser("inspector") as browser:
        (tmp_path / "report.csv").write_bytes((await browser.get(f"/table/{ROU}/rounds.csv", params=PERIOD)).content)
        report = (await browser.get(f"/table/{ROU}/rounds.json", params=PERIOD)).json()
    manual = (Path(__file__).parents[2] / "docs/how-to/operate-the-console.md").read_text(encoding="utf-8")
    [command] = re.findall(r"`(sed [^`]+ sha256sum)`", manual)
    assert shell(command, tmp_path).split()[0] == report["digest"]


async def test_a_round_as_json_has_each_version_as_the_rules_wrote_it(console: Console) -> None:
    first, _, _, corrected = evening(console)
    async with console.browser("inspector") as browser:
        answer = await browser.get(f"/table/{ROU}/report/json/{FIRST}")
    report = answer.json()
    assert answer.headers["content-disposition"] == 'attachment; filename="round-rou-3-2026-11-20-1.json"'
    assert [one["digest"] for one in report["versions"]] == [sha256(data).hexdigest() for data in (corrected, first)]
    assert [one["result"]["outcome"]["pocket"] for one in report["versions"]] == ["17", "2"]
    assert report["digest"] == sha256("".join(f"{one['digest']}\n" for one in report["versions"]).encode()).hexdigest()


async def test_each_report_is_noted_with_who_made_it(console: Console) -> None:
    ended(console, 1)
    async with console.browser("inspector") as browser:
        await browser.get(f"/table/{ROU}/rounds.csv", params=PERIOD)
        await browser.get(f"/table/{ROU}/report/csv/{FIRST}")
        page = (await browser.get("/actions")).text
    assert "rounds.export" in page
    assert "round.export" in page


async def test_a_long_report_is_cut_and_says_so(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "MOST", 2)
    for seq in (1, 2, 3):
        ended(console, seq)
    async with console.browser("inspector") as browser:
        report = (await browser.get(f"/table/{ROU}/rounds.json", params=PERIOD)).json()
    assert report["cut"]
    assert [one["round"][-1] for one in report["rounds"]] == ["1", "2"]


async def test_a_long_csv_says_where_it_ends(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "MOST", 2)
    data = [ended(console, seq) for seq in (1, 2, 3)]
    async with console.browser("inspector") as browser:
        rows = list(csv.reader((await browser.get(f"/table/{ROU}/rounds.csv", params=PERIOD)).text.splitlines()))
    assert [row[-1] for row in rows[1:3]] == [sha256(one).hexdigest() for one in data[:2]]
    assert rows[-1][2] == "cut"
    assert "Rounds in it: 2" in rows[-1][3]


async def test_a_report_says_that_acts_and_alerts_are_left_out_but_keeps_decisions(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MOST_ACTS", 3)
    monkeypatch.setattr(exports, "MOST_ALERTS", 1)
    evening(console)
    console.alert(ROU, "dirt", code="wheel.dirt", device="wheel-1", text="dust")
    for n in range(5):
        console.house.actions.note("dea", "dealer", "dealer", ROU, {"key": "bell", "id": str(n)})
    async with console.browser("inspector") as browser:
        report = (await browser.get(f"/table/{ROU}/rounds.json", params=PERIOD)).json()
        whole = (await browser.get(f"/table/{ROU}/rounds.json", params={**PERIOD, "to": "2026-11-20T00:00"})).json()
    assert [act["user"] for act in report["acts"]] == ["sam", "dea", "dea", "dea"]
    assert (report["acts_cut"], report["alerts_cut"], len(report["alerts"])) == (True, True, 1)
    assert (whole["acts_cut"], whole["alerts_cut"]) == (False, False)


async def test_a_report_names_who_decided_that_round_and_no_other(console: Console) -> None:
    for seq, number in ((1, 1), (2, 10)):
        ended(console, seq, number=number, void=VOID)
    console.house.actions.note("sam", "supervisor", "dealer", ROU, {"key": "void", "round": f"{ROU}:2026-11-20:10"})
    async with console.browser("inspector") as browser:
        report = msgspec.json.decode(
            (await browser.get(f"/table/{ROU}/rounds.json", params=PERIOD)).content, type=Period
        )
    [part] = [rows for rows in PRINTER.period(report).blocks if isinstance(rows, Rows) and len(rows.head) == 5][:1]
    assert [row[4] for row in part.rows] == ["–", "sam (supervisor): void"]


async def test_a_report_of_a_part_of_the_rounds_says_nothing_of_the_others(console: Console) -> None:
    evening(console)
    found = {}
    async with console.browser("inspector") as browser:
        for show in ("all", "resolved"):
            answer = await browser.get(f"/table/{ROU}/rounds.json", params={**PERIOD, "show": show})
            blocks = PRINTER.period(msgspec.json.decode(answer.content, type=Period)).blocks
            found[show] = [one.text for one in blocks if isinstance(one, Heading)]
    assert "Void: 1" in found["all"]
    assert not any(text.startswith("Void") for text in found["resolved"])


async def test_a_report_says_until_when_it_can_speak(console: Console) -> None:
    ended(console, 1)
    console.now = T0 + timedelta(hours=1)
    async with console.browser("inspector") as browser:
        over, going_on = [
            msgspec.json.decode(
                (await browser.get(f"/table/{ROU}/rounds.json", params={**PERIOD, "to": to})).content, type=Period
            )
            for to in ("2026-11-20T20:30", "2026-11-22T00:00")
        ]
    assert over.received_until == T0 + timedelta(minutes=1)
    said = Text("The period was not over when this report was made.", strong=True)
    assert (said in PRINTER.period(over).blocks, said in PRINTER.period(going_on).blocks) == (False, True)
    facts = dict(next(one for one in PRINTER.period(over).blocks if isinstance(one, Facts)).rows)
    assert facts["Last verdict received"] == "20 Nov 2026 20:01:00"


@pytest.mark.parametrize("sign", "=+-@\t\r\n＝＋－＠")
async def test_a_name_that_looks_like_a_formula_is_harmless_in_a_spreadsheet(console: Console, sign: str) -> None:
    ended(console, 1, announcements={"en": f"{sign}1+1"})
    async with console.browser("inspector") as browser:
        table = (await browser.get(f"/table/{ROU}/rounds.csv", params=PERIOD)).text
    assert f"'{sign}1+1" in table


async def test_a_command_that_voids_the_round_is_noted_with_its_name(console: Console) -> None:
    console.device(ROU, "wheel-1", "cammegh_ss2")
    console.say(
        table_topic("lisboa", ROU, "round/state"), msgspec.json.encode(RoundState(FIRST, "running", {}, {}, "r"))
    )
    async with console.browser("supervisor") as browser:
        for command in ("restart-spin", "self-test"):
            answer = await browser.post(f"/table/{ROU}/device/wheel-1/command/{command}", data={})
            assert answer.status_code == 303
    ended(console, 1, void=VOID)
    async with console.browser("inspector") as browser:
        answer = await browser.get(f"/table/{ROU}/rounds.json", params=PERIOD)
    report = msgspec.json.decode(answer.content, type=Period)
    assert [(act.detail["command"], act.detail.get("round")) for act in report.acts] == [
        ("restart-spin", FIRST),
        ("self-test", None),
    ]
    part = next(one for one in PRINTER.period(report).blocks if isinstance(one, Rows) and len(one.head) == 5)
    assert [row[4] for row in part.rows] == ["supervisor@lisboa (supervisor): restart-spin"]


# ---- paper


@needs_poppler
@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ["Rounds of table rou-3", "Page 1 of", "Void: 1", "two, red", "Made by"]),
        ("pt", ["Jogadas da mesa rou-3", "Página 1 de", "Nulas: 1", "dois, vermelho, não ímpar", "Feito por"]),
        ("zh-Hant", ["枱 rou-3 的各局", "第 1 頁", "作廢：1", "2號", "製作人"]),
    ],
)
async def test_a_period_on_paper_can_be_searched_in_three_languages(
    console: Console, tmp_path: Path, lang: str, words: list[str]
) -> None:
    evening(console)
    async with console.browser("inspector", **{"accept-language": lang}) as browser:
        answer = await browser.get(f"/table/{ROU}/rounds.pdf", params=PERIOD)
        report = (await browser.get(f"/table/{ROU}/rounds.json", params=PERIOD)).json()
    assert answer.headers["content-type"] == "application/pdf"
    text = text_of(answer.content, tmp_path)
    for word in (*words, "lisboa", "inspector@lisboa", "sam", "Despacho 60/2004 art. 5(1)", report["digest"]):
        assert word in text, word
    for line in report["rounds"]:
        assert line["digest"][:16] in text


@needs_poppler
async def test_a_round_on_paper_has_its_versions_its_events_and_how_to_compare(
    console: Console, tmp_path: Path
) -> None:
    first, _, _, corrected = evening(console)
    async with console.browser("inspector") as browser:
        answer = await browser.get(f"/table/{ROU}/report/pdf/{FIRST}")
    text = text_of(answer.content, tmp_path)
    for data in (first, corrected):
        assert sha256(data).hexdigest() in text
    assert text.index('"pocket":"17"') < text.index('"pocket":"2"')
    assert f"feltd journal recall rou-3 --round {FIRST}" in text
    assert f"edge-7:{ROU}:4" in text
    assert re.search(r"straight:2\s+35", text)


async def test_a_round_on_paper_leaves_nothing_of_its_result_out(console: Console) -> None:
    paid = [
        {"seat": 3, "bet": "odd", "stake": 5, "returned": 10},
        {"seat": 2, "bet": "column:2", "stake": 7, "returned": 21},
    ]
    ended(
        console,
        1,
        demo=True,
        options={"betting": "no_more_bets"},
        pushes=["tie", {"bet": "main", "seat": 4, "hand": 2}],
        stands=["come:6"],
        moves={"come": "come:8"},
        jackpots=[{"jackpot": "poker", "combination": "flush", "pays": "fixed", "law": "art. 10", "among": [2, 5]}],
        settlements=[*paid, {"seat": 4, "bet": "main", "stake": 9, "returned": 9, "hand": 2}],
    )
    async with console.browser("inspector") as browser:
        report = msgspec.json.decode((await browser.get(f"/table/{ROU}/report/json/{FIRST}")).content, type=RoundReport)
    blocks = PRINTER.round(report).blocks
    facts = {name: value for one in blocks if isinstance(one, Facts) for name, value in one.rows}
    assert facts["Options"] == '{"betting":"no_more_bets"}'
    assert facts["Bets that come back"] == "tie, main (4 · 2)"
    assert (facts["Bets that stand"], facts["Bets that move"]) == ("come:6", "come → come:8")
    assert facts["Jackpots"] == "poker: flush (2, 5; art. 10)"
    assert facts["Demonstration"] == "no bets counted"
    [rows] = [one for one in blocks if isinstance(one, Rows) and one.head[0] == "Seat"]
    expected = payout_order(report.versions[0].result).settlements
    assert [row[1] for row in rows.rows] == [one.bet for one in expected]
    assert ("4 · 2", "main", "9", "9") in rows.rows


def big(rows: int) -> Paper:
    line = ("20 Nov 2026", "x" * 300, "令人 mixed 文字 não", "a\x00b\ud800\U0001f600", "")
    return Paper(
        "Título 標題",
        "pt",
        "foot " * 30,
        "{page}/{pages}",
        (
            Heading("<b>&"),
            Text("x" * 5_000, strong=True),
            Facts((("a", ""),)),
            Rows(("1", "2", "3", "4", "5"), [line] * rows, (1, 2, 3, 1, 1), (3,)),
            Lines(("y" * 500,)),
            Rows(("1",), [], (1,)),
        ),
    )


@pytest.mark.parametrize("rows", [0, 1, 250])
def test_any_text_can_be_set(rows: int) -> None:
    pdf = typesetting.pdf(big(rows))
    assert pdf.startswith(b"%PDF-")
    assert pdf.rstrip().endswith(b"%%EOF")


@needs_poppler
@pytest.mark.parametrize("text", ["x", "two words ", "令", "não 令 ", "x\n", "não 令\n"])
def test_a_cell_that_does_not_fit_a_page_is_cut_and_says_so(text: str, tmp_path: Path) -> None:
    rows = Rows(("a", "b"), [(text * 5_000, "x")], (1, 9))
    pdf = typesetting.pdf(Paper("t", "en", "", "", (rows, Facts((("a", text * 5_000),)), Lines((text * 5_000,)))))
    assert text_of(pdf, tmp_path).count("…") == 3


async def test_paper_says_why_it_was_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "TIMEOUT_S", 0.0)
    with pytest.raises(NotMade, match="longer than"):
        await paper.made(Paper("t", "en", "", "", ()))
    monkeypatch.setattr(paper, "MOST_WAITING", 0)
    with pytest.raises(Busy):
        await paper.made(Paper("t", "en", "", "", ()))


async def test_without_the_library_the_page_says_so(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    ended(console, 1)
    monkeypatch.setattr(paper, "installed", lambda: False)
    async with console.browser("inspector") as browser:
        answer = await browser.get(f"/table/{ROU}/report/pdf/{FIRST}")
    assert answer.status_code == 503
    assert "reportlab is not installed" in answer.text
    assert not [one for one in read_actions(console.journal.path, 100) if one.action.endswith(".export")]
