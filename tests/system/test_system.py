"""The main job with everything real: child processes, a real broker, real ttys. Only the devices are simulated."""

import asyncio
import json
import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from change_socket import answering
from click.testing import CliRunner
from helpers import PATIENCE, at_length, patient
from msgspec.structs import replace

from daemon import table_requests
from daemon.broker.mac_keys import make_mac_keys
from daemon.cli.main import main
from daemon.config.model import parse
from daemon.read_model import SiteState
from daemon.table_requests import Look, Made, Make, Plan, Planned, Seen, ask
from simulators.clock import Pace
from simulators.devices.compare import Account, spared
from simulators.lab import demo, pit
from simulators.lab.broker import Broker, find_mosquitto
from simulators.lab.demo import Child
from simulators.lab.pit import EDGE, SITE, Pit
from simulators.ports.port import Pty
from simulators.tables import table

CAPTURE = Path(__file__).parents[3] / "shared/captures/cammegh-ss2/six-spins.wire"
OWN_CAPTURE = Path(__file__).parents[1] / "captures/ss2-simulated.wire"

SPEED = 40.0


@pytest.fixture(autouse=True, scope="module")
def impatient() -> Iterator[None]:
    """A process that was killed is started again sooner than systemd would, an order lost with it given up sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "RESTART_DELAY_S", 0.2)
        patch.setattr(pit, "COMMAND_TIMEOUT_S", 2.0)
        yield


@pytest.fixture
def patient_dealers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a display and an answer come late: no dealer declares a round void for that."""
    monkeypatch.setattr(table, "DISPLAY_TIMEOUT_S", 30.0)
    monkeypatch.setattr(pit, "COMMAND_TIMEOUT_S", 30.0)


pytestmark = [pytest.mark.system, pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")]


@asynccontextmanager
async def running(*bodies: Coroutine[Any, Any, Any]) -> AsyncIterator[None]:
    """Let tasks run meanwhile, and end them."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(body) for body in bodies]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def log_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("{")]


async def mosquitto_sub(port: int, topic: str, count: int, subscribed: asyncio.Event) -> list[dict[str, Any]]:
    """The first `count` messages, as Debian's own client prints them; one that is published again counts once.

    It has `subscribed` when it was given what is retained.
    """
    program = shutil.which("mosquitto_sub")
    assert program is not None
    retained = f"felt/1/{SITE}/edge/rules/availability"
    process = await asyncio.create_subprocess_exec(
        program, "-p", str(port), "-q", "1", "-t", topic, "-t", retained, stdout=asyncio.subprocess.PIPE, limit=2**20
    )
    assert process.stdout is not None
    heard: dict[str, dict[str, Any]] = {}
    try:
        assert await process.stdout.readline() == b"online\n"
        subscribed.set()
        while len(heard) < count:
            one = json.loads(await process.stdout.readline())
            heard.setdefault(one["id"], one)
    finally:
        process.kill()
        await process.wait()
    return list(heard.values())


@pytest.mark.parametrize("seed", at_length([1], [1, 2]))
@pytest.mark.parametrize(
    ("capture", "pockets"),
    [
        pytest.param(
            CAPTURE,
            ["27", "16", "6", "3", "10", "0"],
            marks=pytest.mark.skipif(not CAPTURE.exists(), reason="the capture of a real wheel is not here"),
            id="real wheel",
        ),
        pytest.param(OWN_CAPTURE, None, id="simulated wheel"),
    ],
)
async def test_a_wheels_bytes_become_resolved_rounds(
    tmp_path: Path, capture: Path, pockets: list[str] | None, seed: int
) -> None:
    """Bytes split and merged at random through a tty: as many resolved rounds as spins, seen by mosquitto_sub."""
    data = await asyncio.to_thread(capture.read_bytes)
    if pockets is None:
        pockets = [line.strip().decode() for line in data.split(b"\r\n") if len(line) == 2]
    rng = random.Random(seed)
    tty = Pty(tmp_path / "tty")
    tty.plug()
    broker = Broker(tmp_path)
    await broker.start()
    config = tmp_path / "feltd.toml"
    config.write_text(
        f"""
[site]
name = "{SITE}"
[edge]
name = "{EDGE}"
journal = "{tmp_path}/edge.db"
[rules]
insecure = true
journal = "{tmp_path}/rules.db"
[mqtt]
port = {broker.port}
[[table]]
name = "rou-1"
ruleset = "macau.roulette"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "serial://{tmp_path}/tty"
"""
    )
    picture = SiteState(parse(config.read_text()).mqtt, SITE)
    asked = asyncio.Event()
    tty.received = lambda _: asked.set()  # the driver's first words: it listens
    try:
        async with (
            asyncio.timeout(5 * PATIENCE),
            running(picture.run(), Child("edge", config).keep(), Child("rules", config).keep()),
        ):
            topic, subscribed = f"felt/1/{SITE}/table/rou-1/round/event/resolved", asyncio.Event()
            seen = asyncio.create_task(mosquitto_sub(broker.port, topic, len(pockets), subscribed))
            await picture.until(lambda: all(picture.is_online(name) for name in (EDGE, "rules")))
            await subscribed.wait()
            asked.clear()  # a driver that heard nothing since then has given up this session
            await asked.wait()
            at = 0
            while at < len(data):
                size = rng.choice((1, 3, 17, 40, 200))
                tty.send(data[at : at + size])
                at += size
                await asyncio.sleep(rng.uniform(0.001, 0.008))
            rounds = await seen
    finally:
        tty.unplug()
        await broker.stop()
    assert [one["data"]["result"]["outcome"]["pocket"] for one in rounds] == pockets
    assert all(one["data"]["result"]["law"] and one["data"]["result"]["evidence"] for one in rounds)


# Of edge and rules; broker and console have no unit here.
SYSTEMCTL = """#!/bin/sh
case "$*" in
  "is-active --quiet feltd-edge" | "is-active --quiet feltd-rules") ;;
  "reload feltd-edge feltd-rules") kill -HUP {} {} ;;
  *) exit 3 ;;
esac
"""
NEW_TABLE = ("table", "add", "new-1", "--device", "wheel-1=tcs_saturn@tcp://127.0.0.1:1", "--why", "a twin", "--yes")


class Site:
    """A pit, its broker, and the processes of production.

    A table plays few rounds, as one that is suspended waits some seconds for its dealer; `copies` tables of each kind
    play them beside each other.
    """

    def __init__(self, tmp_path: Path, seed: int, speed: float, copies: int) -> None:
        self.path = tmp_path
        self.pit = Pit(tmp_path, seed, copies=copies, kinds=("rou", "cus", "bac"), speed=speed)
        self.pace = Pace(speed)
        self.broker = Broker(tmp_path)
        self.config = tmp_path / "feltd.toml"
        self.edge = Child("edge", self.config)
        self.rules = Child("rules", self.config)
        self.picture: SiteState | None = None

    async def play(self, rounds: int, meanwhile: Callable[[SiteState], Coroutine[Any, Any, None]]) -> SiteState:
        """Play so many rounds, and on while something is done meanwhile; wait until a result of each came out."""
        await self.broker.start()
        self.pit.open(self.pace, self.broker.port, self.broker.version)
        make_mac_keys(self.config.parent, EDGE, SITE)
        self.config.write_text(self.pit.config(self.broker.port, self.broker.version))
        mqtt = parse(self.config.read_text()).mqtt
        self.picture = picture = SiteState(mqtt, SITE, from_start=True)
        try:
            picture.on_opened.append(self.pit.opened)
            picture.on_result.append(self.pit.heard)
            floor = (self.pit.live(), self.pit.serve(mqtt), picture.run())
            async with running(*floor, self.broker.keep(), self.edge.keep(), self.rules.keep()):
                async with asyncio.TaskGroup() as group:
                    doing = group.create_task(meanwhile(picture))
                    await self.pit.deal(self.pace, rounds, picture)
                    while not doing.done():  # on a busy computer it takes longer than the rounds
                        await self.pit.deal(self.pace, len(self.pit.tables), picture)
                dealt = self.pit.dealt()
                await picture.until(lambda: all(not account.lost for account in self.accounts(dealt).values()))
        except asyncio.CancelledError:  # nothing moves any more
            sys.stderr.write(self._standing(picture))
            raise
        finally:
            await self.broker.stop()
        return picture

    def accounts(self, dealt: dict[str, int]) -> dict[str, Account]:
        """What came out against what happened.

        One void result is like another: that of a spin which nobody saw end may be taken for the spin that the closing
        of the table cut short unseen.
        """
        return {name: spared(one, self.pit.outcomes[name]) for name, one in self.pit.accounts(dealt).items()}

    def progress(self) -> object:
        """What moves as long as rounds are played: events, phases, results, and processes that are started again."""
        tables = self.picture.tables if self.picture is not None else {}
        seen = [(one.events, one.phase, one.resolved, one.voided) for one in tables.values()]
        return seen, self.pit.dealt(), self.edge.starts, self.rules.starts

    def _standing(self, picture: SiteState) -> str:
        """What everybody waits for."""
        dealt = self.pit.dealt()
        said = [f"edges {picture.edges}, gaps {picture.gaps}"]
        for name, one in picture.tables.items():
            said.append(f"{name}: {dealt[name]} dealt, {one.phase} {one.round}, {one.online}, {one.alerts}")
        for log in ("edge.log", "rules.log"):
            said += [log, *map(str, log_lines(self.path / log)[-8:])]
        return "\n".join([*said, ""])


async def kill(child: Child) -> None:
    assert child.process is not None
    child.process.send_signal(signal.SIGKILL)
    await child.process.wait()


async def results(picture: SiteState, more: int) -> None:
    """Wait until so many more rounds ended."""
    target = sum(view.resolved + view.voided for view in picture.tables.values()) + more
    await picture.until(lambda: sum(view.resolved + view.voided for view in picture.tables.values()) >= target)


async def results_everywhere(picture: SiteState, more: int) -> None:
    """Wait until all are back, and so many more rounds ended at each table.

    Of a wheel that stops while its edge is away nobody can say whether its last spin ran: the counter of the next one
    proves it. On a busy computer an edge is away for long.
    """
    await picture.until(lambda: bool(picture.edges) and all(picture.edges.values()))
    targets = {name: view.resolved + view.voided + more for name, view in picture.tables.items()}
    await picture.until(
        lambda: all(picture.tables[name].resolved + picture.tables[name].voided >= targets[name] for name in targets)
    )


@pytest.mark.timeout(1800)  # by its progress it ends long before
@pytest.mark.parametrize("victims", [*at_length([], [("edge",), ("broker",), ("rules",)]), ("edge", "broker", "rules")])
async def test_killing_a_process_loses_no_round(tmp_path: Path, victims: tuple[str, ...]) -> None:
    """kill -9 in the middle of play: every round comes out, resolved as it was or void; none is lost, none is wrong."""
    site = Site(tmp_path, seed=11, speed=SPEED, copies=2)

    async def violence(picture: SiteState) -> None:
        for victim in victims * (2 if len(victims) == 1 else 1):
            await results(picture, 3)
            if victim == "broker":
                await site.broker.kill()
            else:
                await kill(site.edge if victim == "edge" else site.rules)
        await asyncio.sleep(1.0)  # the broker says of who was killed that he is gone
        await results_everywhere(picture, 2)

    await patient(site.play(18, violence), site.progress)
    accounts = site.accounts(site.pit.dealt())
    for name, account in accounts.items():
        told = f"{name}: {account}, {[(one.round, one.void) for one in site.pit.outcomes[name] if one.void]}"
        assert account.lost == 0, told
        assert account.wrong == 0, told
        if "edge" not in victims or name.startswith("cus-"):
            assert account.voided + account.extra <= 1, told  # one where the computer stood still for seconds
        # else: an edge that was away has not seen what a wheel or a shoe cannot say again; shaker and console can
    assert sum(account.right for account in accounts.values()) >= 8


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("patient_dealers")
async def test_a_configuration_that_is_read_again_in_the_middle_of_play_loses_no_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is added by its command; the wheel of another moves, as the page does it, amid a round of a third one.

    The other tables see nothing.
    """
    site = Site(tmp_path, seed=12, speed=SPEED, copies=1)
    systemctl = tmp_path / "bin/systemctl"
    systemctl.parent.mkdir()
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")

    async def changed(picture: SiteState, times: int) -> None:
        for name in ("edge", "rules"):
            while sum(line["event"] == f"{name}.started" for line in log_lines(tmp_path / f"{name}.log")) < times:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        await results(picture, 4)

    async def reload(picture: SiteState) -> None:
        await results(picture, 3)
        pids = [child.process.pid for child in (site.edge, site.rules) if child.process]
        systemctl.write_text(SYSTEMCTL.format(*pids))
        systemctl.chmod(0o755)
        done = await asyncio.to_thread(CliRunner().invoke, main, [*NEW_TABLE, "-c", str(site.config)])
        assert done.exit_code == 0, done.output
        await changed(picture, 2)
        other = tmp_path / "other-port"
        other.symlink_to(Path(site.pit.ports["rou-1/wheel-1"].url.removeprefix("serial://").partition("?")[0]))
        with patch.object(table_requests, "SOCKET", tmp_path / "s"), answering(site.config, tmp_path / "s"):
            seen = await ask(Look())
            assert isinstance(seen, Seen)
            (table,) = (one for one in seen.tables if one.name == "rou-1")
            wanted = replace(table, devices=(replace(table.devices[0], url=f"serial://{other}"), *table.devices[1:]))
            plan = await ask(Plan(wanted))
            assert isinstance(plan, Planned), plan
            await picture.until(lambda: picture.tables["bac-1"].phase not in {"-", "idle"})
            assert isinstance(await ask(Make(wanted, plan.digest, "maria", "another port")), Made)
        await changed(picture, 3)

    await patient(site.play(14, reload), site.progress)
    assert site.edge.starts == site.rules.starts == 1
    accounts = site.accounts(site.pit.dealt())
    for name, account in accounts.items():
        told = f"{name}: {account}, {[(one.round, one.void) for one in site.pit.outcomes[name] if one.void]}"
        assert account.lost == account.wrong == 0, told
        if name != "rou-1":
            assert account.voided + account.extra <= 1, told  # one where the computer stood still for seconds
    lines = [line for line in log_lines(tmp_path / "edge.log") if line["event"] == "device.online"]
    online = Counter(f"{line['table']}/{line['device']}" for line in lines)
    assert online.pop("rou-1/wheel-1") == 2
    assert set(online.values()) == {1}


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("patient_dealers")
async def test_trouble_at_one_table_is_told_once_and_leaves_the_others_alone(tmp_path: Path) -> None:
    """Unplugged and plugged in again, then noise: offline and back, logged once each; the other tables unmoved."""
    site = Site(tmp_path, seed=5, speed=SPEED, copies=1)

    async def trouble(picture: SiteState) -> None:
        await results(picture, 3)
        port = site.pit.ports["rou-1/wheel-1"]
        for _ in range(2):
            port.unplug()
            await picture.until(lambda: not picture.tables["rou-1"].online["wheel-1"])
            await picture.until(lambda: "wheel-1-device-offline" in picture.tables["rou-1"].alerts)
            port.plug()
            await picture.until(lambda: picture.tables["rou-1"].online["wheel-1"])
            await picture.until(lambda: not picture.tables["rou-1"].alerts)
        site.pit.sockets["rou-1"]["wheel-1"].inject("garbage")
        await results(picture, 3)

    await patient(site.play(12, trouble), site.progress)
    accounts = site.pit.accounts(site.pit.dealt())
    assert all(not account.lost and not account.wrong for account in accounts.values())
    for name in ("cus-1", "bac-1"):  # a computer that stands still for seconds may cost them a round, trouble does not
        assert accounts[name].right >= 3, name
    lines = [line for line in log_lines(tmp_path / "edge.log") if line.get("table") == "rou-1"]
    wheel = [line["event"] for line in lines if line.get("device") == "wheel-1"]
    assert wheel == ["device.online", "device.lost", "device.back", "device.lost", "device.back"]
    assert not [line for line in log_lines(tmp_path / "edge.log") if line["event"] == "driver.bug"]


@pytest.mark.parametrize("embedded", [False, True], ids=["mosquitto", "embedded broker"])
async def test_the_headless_demo_ends_by_itself(embedded: bool) -> None:
    """As fast as it can, and every result is what the simulators did."""
    more = ["--embedded-broker"] if embedded else []
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "daemon.cli", "demo", "--headless", "--rounds", "12", "--seed", "7", *more,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()  # it ends its broker, too
            await process.communicate()
    assert process.returncode == 0, (out, err)
    assert b"12 rounds" in out
    assert b"the books agree with an independent model" in out
    assert b"every result is what the simulators did" in out
