"""What machines read of the console, and that rules and dashboard ask for nothing that is not there."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from console_floor import Console, opened
from helpers import result_of
from prometheus_client.parser import text_string_to_metric_families

from daemon.console.auth.users import By
from daemon.console.site.store import BadStore
from protocols.contract.events import CardDrawn, DeviceOnline, DisplayShown
from protocols.contract.jackpots import BookEntry, PendingWin, PoolBooks, PoolLevel, PoolTerms, PoolWin
from protocols.contract.results import Award
from protocols.contract.topics import Wire, encode_wire

FOLDER = Path(__file__).parents[2] / "systemd/monitoring"
RULES = FOLDER / "feltd.rules.yml"
TEST = FOLDER / "feltd.rules.test.yml"
DASHBOARD = FOLDER / "grafana-feltd.json"
HOOK = '[[console.webhook]]\nurl = "http://127.0.0.1:9/s3cr3t"'


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path, HOOK) as one:
        yield one


def playing(console: Console) -> None:
    """A floor on which everything happens that is counted."""
    console.begin()
    console.device("bac-12", "shoe-1", "bee_tek_shoe")
    console.device("rou-3", "wheel-1", "cammegh_ss2", online=False)
    for _ in range(3):
        console.event("bac-12", "shoe-1", CardDrawn("9D"))
    for kind in ("resolved", "resolved", "voided"):
        for hear in console.house.site.on_result:
            hear("bac-12", kind, result_of({"round": "r"}))
    console.alert("bac-12", "round-suspended", code="round.suspended")
    console.alert("rou-3", "wheel-1-oil", code="oil.low", severity="warning")
    console.alert("rou-3", "wheel-1-jam", code="jam", severity="warning")
    console.alert("rou-3", "wheel-1-x", code="x", severity="error")
    with_a_pool(console)
    incidents = console.house.incidents
    incidents.acknowledge(2, "maria", "", console.now)
    incidents.silence("", "", "jam", console.now + timedelta(hours=1), "ana", "new wheel", console.now)
    console.wait(30)


def with_a_pool(console: Console) -> None:
    """A pool with a win that waits, and a sign that was right until the last entry."""
    red, at = "felt/1/lisboa/jackpot/red", console.now
    win = PoolWin("r/1", "bac-12", "r", at, Award("A", "flush", "fixed", "law"), 5000)
    books = PoolBooks("red", at, 1, ("bac-12",), PoolTerms(0, "0.5"), (win,), ("bac-12/sign-1",), waiting=1)
    console.say(f"{red}/books", msgspec.json.encode(books))
    after = {"players": -20000, "visible": 11001, "hidden": 2400, "overflow": 1599, "pending": 5000}
    for amount in (10999, 11001):
        pending = (PendingWin("r/1", "bac-12", "r", "flush", 5000, "pending"),)
        level = PoolLevel("red", amount, "MOP", 2, amount - 10998, at, pending, waiting=1, set_aside="5000")
        console.say(f"{red}/level", msgspec.json.encode(level))
        console.event("bac-12", "sign-1", DisplayShown("109.99", confirmed=True))
    entry = BookEntry(1, 1, {account: str(value) for account, value in after.items()})
    wire = Wire("1.0", "j:red:1", red, "noted", at, 1, data=msgspec.Raw(msgspec.json.encode(entry)))
    console.say(f"{red}/event/noted", encode_wire(wire))


def figures(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(console: Console, accept: str = "") -> str:
    text, content_type = console.house.metrics.text(accept)
    assert content_type.startswith("text/plain")
    return text.decode()


def test_the_floor_in_figures(console: Console) -> None:
    playing(console)
    found = figures(scraped(console))

    def of(name: str, **labels: str) -> float | None:
        return found.get((name, tuple(sorted(labels.items()))))

    assert of("feltd_broker_connected") == 1
    assert of("feltd_edge_online", edge="edge-7") == 1
    assert of("feltd_edge_outbox_depth", edge="edge-7") == 3
    assert of("feltd_edge_outbox_age_seconds", edge="edge-7") == 0.5
    assert of("feltd_edge_loop_lag_seconds", edge="edge-7") == 0.0015
    assert of("feltd_edge_health_age_seconds", edge="edge-7") == 30
    assert of("feltd_edge_cpu_seconds_total", edge="edge-7") == 12.5
    assert of("feltd_edge_boots_total", edge="edge-7") == 4
    assert of("feltd_device_online", table="bac-12", device="shoe-1", driver="bee_tek_shoe") == 1
    assert of("feltd_device_online", table="rou-3", device="wheel-1", driver="cammegh_ss2") == 0
    assert (of("feltd_devices", lamp="good"), of("feltd_devices", lamp="offline")) == (1, 1)
    assert of("feltd_events_total", table="bac-12", device="shoe-1") == 3
    assert of("feltd_events_replayed_total", table="bac-12") is None
    assert of("feltd_rounds_total", table="bac-12", end="resolved") == 2
    assert of("feltd_rounds_total", table="bac-12", end="voided") == 1
    assert of("feltd_rounds_total", table="bac-12", end="suspended") == 1
    assert of("feltd_last_event_age_seconds", table="bac-12") == 30
    assert of("feltd_last_event_age_seconds", table="rou-3") is None
    assert of("feltd_incidents", severity="error", state="open") == 2
    assert of("feltd_incidents", severity="warning", state="acknowledged") == 1
    assert of("feltd_incidents", severity="warning", state="silenced") == 1
    assert of("feltd_incidents_begun_total", severity="warning") == 2
    assert of("feltd_webhook_waiting", webhook="1") == 4  # one for each table and kind of process
    assert of("feltd_webhook_age_seconds", webhook="1") == 30
    red = {"pool": "red"}
    assert of("feltd_jackpot_level", currency="MOP", **red) == 110.01
    assert of("feltd_jackpot_hidden", currency="MOP", **red) == 24
    assert of("feltd_jackpot_overflow", currency="MOP", **red) == 15.99
    assert of("feltd_jackpot_contributed", currency="MOP", **red) == 200
    assert of("feltd_jackpot_balanced", **red) == 1
    assert of("feltd_jackpot_entries_missing", **red) == 2
    assert (of("feltd_jackpot_wins_waiting", **red), of("feltd_jackpot_win_age_seconds", **red)) == (1, 30)
    assert of("feltd_jackpot_sign_lag_seconds", sign="bac-12/sign-1", **red) == 30
    assert (of("feltd_console_sessions"), of("feltd_console_streams"), of("feltd_replay_gaps")) == (0, 0, 0)
    assert (of("process_resident_memory_bytes") or 0) > 10_000_000
    assert "s3cr3t" not in scraped(console)


def test_unknown_metrics_are_left_out(console: Console) -> None:
    playing(console)
    console.edge(online=False)
    found = {name for name, _ in figures(scraped(console))}
    assert "feltd_edge_online" in found
    assert not found & {"feltd_edge_outbox_depth", "feltd_edge_disk_free_bytes", "feltd_device_online"}
    console.lose()
    found = {name for name, _ in figures(scraped(console))}
    assert "feltd_edge_online" not in found
    assert figures(scraped(console))["feltd_broker_connected", ()] == 0
    assert figures(scraped(console))["feltd_devices", (("lamp", "unknown"),)] == 2


def test_strangers_on_the_broker_make_no_endless_labels(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.console.alerts.metrics.MOST_COUNTED", 10)
    console.connect()
    for number in range(50):
        console.event(f"t-{number}", "shoe-1", DeviceOnline(False, "", "", ""))
        for hear in console.house.site.on_result:
            hear(f"t-{number}", "resolved", result_of({"round": "r"}))
    found = figures(scraped(console))
    assert sum(name == "feltd_events_total" for name, _ in found) == 11
    assert found["feltd_events_total", (("device", "other"), ("table", "other"))] == 40
    assert found["feltd_rounds_total", (("end", "resolved"), ("table", "other"))] == 40


async def test_metrics_are_for_who_has_a_token(console: Console) -> None:
    users = console.house.access.users
    secret = users.add_token(By("ana", "supervisor"), "prometheus", "metrics")
    async with console.browser() as browser:
        refused = await browser.get("/metrics")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        wrong = await browser.get("/metrics", headers={"authorization": "Bearer nothing"})
        assert wrong.status_code == 401
        answer = await browser.get("/metrics", headers={"authorization": f"Bearer {secret}"})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        accept = "application/openmetrics-text;version=1.0.0"
        answer = await browser.get("/metrics", headers={"authorization": f"Bearer {secret}", "accept": accept})
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        assert answer.text.endswith("# EOF\n")


async def test_metrics_may_be_open(tmp_path: Path) -> None:
    with opened(tmp_path, 'metrics = "open"') as console:
        async with console.browser() as browser:
            assert (await browser.get("/metrics")).status_code == 200


async def test_alive_and_ready(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    async with console.browser() as browser:

        async def ready() -> tuple[int, Any]:
            answer = await browser.get("/readyz")
            return answer.status_code, answer.json()

        assert (await browser.get("/healthz")).status_code == 200
        assert await ready() == (503, {"broker": False, "store": True, "retained": False})
        console.connect()
        console.wait(0)
        assert await ready() == (503, {"broker": True, "store": True, "retained": False})
        console.wait(10)  # a broker that retains nothing at all
        assert await ready() == (200, {"broker": True, "store": True, "retained": True})
        console.lose()
        console.wait(1)
        console.connect()
        console.wait(1)
        assert (await ready())[1]["retained"] is False
        console.edge()
        assert await ready() == (200, {"broker": True, "store": True, "retained": True})

        def full() -> None:
            raise BadStore("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(console.store, "write", full)
            assert (await ready())[0] == 200  # it was written a moment ago
            console.now += timedelta(seconds=5)
            assert await ready() == (503, {"broker": True, "store": False, "retained": True})
            assert (await browser.get("/healthz")).status_code == 200
        console.now += timedelta(seconds=5)
        assert (await ready())[0] == 200


# ---- what is beside it


def exposed(console: Console) -> set[str]:
    """All that the console exposes, with a floor on which everything happens, and what Prometheus adds itself."""
    playing(console)
    return {line.split()[2] for line in scraped(console).splitlines() if line.startswith("# TYPE ")} | {"up"}


def asked(expression: str) -> set[str]:
    """The metrics of an expression."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left) *\([^)]*\)", "", bare)
    return set(re.findall(r"\b(?:feltd|process|up)(?:_[a-z_]+)?\b", re.sub(r"\{[^}]*\}", "", bare)))


def test_rules_and_dashboard_ask_for_what_is_exposed(console: Console) -> None:
    there = exposed(console)
    text = RULES.read_text(encoding="utf-8")
    expressions = re.findall(r"^ +expr: (\|\n(?: {10,}.*\n)+|.*\n)", text, re.MULTILINE)
    rules = re.findall(r"- alert: (\w+)", text)
    assert len(expressions) == len(rules) >= 20
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert all(panel["targets"] for panel in panels)
    of_panels = [target["expr"] for panel in panels for target in panel["targets"]]
    of_variables = [one["definition"].removeprefix("label_values(") for one in dashboard["templating"]["list"][1:]]
    for expression in (*expressions, *of_panels, *of_variables):
        names = asked(expression)
        assert names, expression
        assert names <= there, expression
    # And nothing is exposed that nobody looks at, but for what the library itself adds.
    own = {name for name in there if name.startswith("feltd_")}
    assert own == {name for one in (*expressions, *of_panels) for name in asked(one) if name.startswith("feltd_")}


def test_each_rule_says_how_bad_it_is_and_what_to_do_and_has_a_test() -> None:
    text = RULES.read_text(encoding="utf-8")
    blocks = text.split("- alert: ")[1:]
    for block in blocks:
        name = block.split("\n", 1)[0]
        assert re.search(r"labels: \{severity: (warning|error)\}", block), name
        assert re.search(r'summary: ".+"', block), name
        assert re.search(r'remedy: ".+"', block), name
        assert ("for: " in block) or "[1h]" in block, name
    tested = re.findall(r"- name: (\w+)", TEST.read_text(encoding="utf-8"))
    assert tested == [block.split("\n", 1)[0] for block in blocks]


def test_panels_stand_beside_each_other() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        area = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not area & taken, panel["title"]
        taken |= area
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def promtool(*words: str, stdin: str = "", folder: Path = FOLDER) -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("no promtool on this computer (Debian's package prometheus has it)")
    done = subprocess.run([found, *words], input=stdin, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_promtool_takes_the_rules() -> None:
    assert "25 rules found" in promtool("check", "rules", RULES.name)


def test_promtool_sees_each_rule_fire() -> None:
    assert "SUCCESS" in promtool("test", "rules", TEST.name)


def test_promtool_takes_the_metrics(console: Console) -> None:
    playing(console)
    assert promtool("check", "metrics", stdin=scraped(console)) == ""


def test_promtool_takes_the_configuration(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    token = tmp_path / "token"
    token.write_text("nothing")
    text = (FOLDER / "prometheus.yml").read_text(encoding="utf-8")
    assert "/etc/prometheus/feltd-token" in text
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/feltd-token", str(token)))
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml", folder=tmp_path)
