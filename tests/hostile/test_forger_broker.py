"""A forger with one password of the broker: real mosquitto, the access list of two computers."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from helpers import PATIENCE, START, at_length
from msgspec.structs import replace
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from daemon.broker import connection
from daemon.broker.connection import bound, connect
from daemon.broker.mac_keys import make_mac_key
from daemon.broker.session import BrokerLost, Session
from daemon.cli.access_list import BadSite, access_list
from daemon.cli.forget import forget
from daemon.cli.main import main
from daemon.config.model import Maintenance, Mqtt, load, parse
from daemon.consumer.consumer import Consumer
from daemon.edge.edge import Edge
from daemon.journal.rows import Entry, Row
from daemon.journal.store import Journal
from protocols.contract.events import BallLanded, encode_data, type_of
from protocols.contract.topics import Envelope, edge_topic, encode_envelope
from simulators.lab.tools.schema import asyncapi
from tests.consumer.test_consumer import SPIN, rows
from tests.system.test_systemd import JUDGE, Broker, Visitor, password, program, run

MQTT = '[mqtt]\nport = {port}\nusername = "console"\npassword_file = "{folder}/console"\n'
PIT = """\
[site]
name = "s"
[edge]
name = "edge-{n}"
journal = "{folder}/edge-{n}.db"
password_file = "{folder}/edge-{n}"
[rules]
journal = "{folder}/rules.db"
{rules}
{mqtt}
[[table]]
name = "rou-{n}"
ruleset = "macau.roulette"
[table.options]
betting = "no_more_bets"
[[table.device]]
name = "d-1"
driver = "cammegh_ss2"
url = "tcp://127.0.0.1:{n}"
[[table]]
name = "both"
[[table.device]]
name = "d-{n}"
driver = "bee_tek_shoe"
url = "tcp://127.0.0.1:1{n}"
"""
USERS = ("edge-1", "edge-2", "rules", "console", "reader", "display", "maintenance")


def pit(n: int, folder: Path, port: int = 1883) -> str:
    """The configuration of computer `n`; the rules of both run on the first."""
    mqtt = MQTT.format(port=port, folder=folder) if n == 1 else f"[mqtt]\nport = {port}\n"
    rules = f'password_file = "{folder}/rules"' if n == 1 else ""
    text = PIT.format(n=n, folder=folder, rules=rules, mqtt=mqtt)
    if n == 1:
        text += f'[maintenance]\nusername = "maintenance"\npassword_file = "{folder}/maintenance"\n'
        text += '[[table]]\nname = "rou-2"\nruleset = "macau.roulette"\n'
    return text


def made(folder: Path, *texts: str) -> str:
    """The access list of computers with these configurations."""
    paths = [folder / f"feltd-{n}.toml" for n in range(1, len(texts) + 1)]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return access_list([(path, load(path)) for path in paths])


class Site(Broker):
    """The shipped configuration of mosquitto, with the users of two computers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.grant(made(folder, pit(1, folder, self.port), pit(2, folder, self.port)))
        self._write(folder / "feltd.passwd", "".join(f"{user}:{password(user)}\n" for user in (*USERS, JUDGE)))
        assert run(program("mosquitto_passwd"), "-U", folder / "feltd.passwd").returncode == 0
        for user in (*USERS, JUDGE):
            (folder / user).write_text(password(user) + "\n")

    def settings(self, user: str) -> Mqtt:
        return Mqtt(port=self.port, username=user, password_file=str(self.folder / user))

    def publish(self, user: str, topic: str, payload: bytes, *more: str) -> None:
        """As anybody can who has the password of `user`."""
        me = ("-p", str(self.port), "-u", user, "-P", password(user), "-q", "1")
        run(program("mosquitto_pub"), *me, "-t", topic, "-m", payload.decode(), *more)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as one:
        yield one


# ---- who may write where


def of_user(text: str, user: str) -> dict[str, list[str]]:
    """By what is said of them, the topics of a user."""
    block = text.partition(f"\nuser {user}\n")[2].partition("\n\n")[0]
    found: dict[str, list[str]] = {"deny": [], "write": [], "read": []}
    for line in block.splitlines():
        _, right, topic = line.split()
        found[right].append(topic)
    return found


def may_write(text: str, user: str, topic: str) -> bool:
    rights = of_user(text, user)
    hit = {right: any(paho.topic_matches_sub(one, topic) for one in topics) for right, topics in rights.items()}
    return hit["write"] and not hit["deny"]


def topics(**place: str) -> list[str]:
    """Every topic of the tree at one place."""
    names = {"pool": "red", "entry": "won", "order": "pay", "terminal": "t-1"}
    place = {"command": "power", "type": "ball.landed", "alert": "d-1-x", **names, **place}
    return [channel["address"].format(**place) for channel in asyncapi("0")["channels"].values()]


def test_each_edge_may_write_what_is_its_own(tmp_path: Path) -> None:
    """Of another edge, another site or another table nothing at all; of a table that two share its own devices."""
    text = made(tmp_path, pit(1, tmp_path), pit(2, tmp_path))
    own = topics(site="s", table="rou-1", device="d-1", edge="edge-1")
    written = {topic for topic in own if may_write(text, "edge-1", topic)}
    leaves = {topic.removeprefix("felt/1/s/") for topic in written}
    place = "table/rou-1/device/d-1/"
    assert leaves == {
        *(f"edge/edge-1/{leaf}" for leaf in ("availability", "info", "health", "alive", "head")),
        *(place + leaf for leaf in ("availability", "meta", "state", "event/ball.landed", "trace", "cmd/power/result")),
        "table/rou-1/cmd/replay/result",
        "table/rou-1/alert/d-1-x",
    }
    for other in (
        {"site": "s", "table": "rou-2", "device": "d-1", "edge": "edge-2"},
        {"site": "x", "table": "rou-1", "device": "d-1", "edge": "edge-1"},
        {"site": "s", "table": "another", "device": "d-1", "edge": "rules"},
    ):
        assert [topic for topic in topics(**other) if may_write(text, "edge-1", topic)] == []
    shared = "felt/1/s/table/both/device/{}/event/card.drawn"
    assert may_write(text, "edge-1", shared.format("d-1"))
    assert not may_write(text, "edge-1", shared.format("d-2"))
    assert may_write(text, "edge-2", shared.format("d-2"))
    for alert in ("round-suspended", "rules-events-forged", "rules-events-conflict", "rules-journal-room"):
        assert not may_write(text, "edge-1", f"felt/1/s/table/rou-1/alert/{alert}")
        assert may_write(text, "rules", f"felt/1/s/table/rou-1/alert/{alert}")


def test_acl_gives_no_wildcard_for_the_site(tmp_path: Path) -> None:
    text = made(tmp_path, pit(1, tmp_path), pit(2, tmp_path))
    lines = [line.split() for line in text.splitlines() if line.startswith("topic ")]
    told = [topic for _, _, topic in lines if topic != "reply/#"]
    assert {topic.split("/")[2] for topic in told if topic.startswith("felt/")} == {"s"}
    nodes = {topic.split("/")[2] for topic in told if not topic.startswith("felt/")}
    assert nodes == {"feltd_s_edge-1", "feltd_s_edge-2"}  # of Home Assistant's discovery


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (("", ""), ('name = "s"', 'name = "x"'), "feltd-2.toml:2: site 'x', but "),
        (("", ""), ('"edge-2"', '"edge-1"'), "edge 'edge-1' is in "),
        (("", ""), ('password_file = "{}/edge-2"', ""), "feltd-2.toml:4: edge 'edge-2' has no user of its own"),
        (("", ""), ("[edge]", '[edge]\nusername = "edge-1"'), "user 'edge-1' of the broker is edge 'edge-1' and edge"),
        (('password_file = "{}/rules"', ""), ("", ""), "rules 'rules' have no user of their own on the broker"),
        (("[edge]", '[edge]\nusername = "console"'), ("", ""), "user 'console' of the broker is edge 'edge-1' and the"),
        (("[edge]", '[edge]\nusername = "reader"'), ("", ""), "user 'reader' of the broker is edge 'edge-1' and a rea"),
        (("[edge]", '[edge]\nusername = "a\\nuser b"'), ("", ""), "cannot be a user of an access list"),
        (("[rules]", '[rules]\nname = "edge-2"'), ("", ""), "edge 'edge-2' has the name of rules of the site"),
        (
            ("", ""),
            ("[rules]", '[rules]\nusername = "others"\npassword_file = "/x"'),
            "rules 'rules' are user 'others' here and 'rules' elsewhere; one name has one user",
        ),
    ],
)
def test_configurations_that_share_what_must_differ_give_no_list(
    tmp_path: Path, first: tuple[str, str], second: tuple[str, str], said: str
) -> None:
    texts = []
    for n, (old, new) in enumerate((first, second), 1):
        text, what = pit(n, tmp_path), old.format(tmp_path)
        assert what in text
        texts.append(text.replace(what, new, 1) if what else text)
    with pytest.raises(BadSite) as caught:
        made(tmp_path, *texts)
    assert said in str(caught.value)
    done = CliRunner().invoke(main, ["acl", *(str(tmp_path / f"feltd-{n}.toml") for n in (1, 2))])
    assert done.exit_code == 2
    assert said in done.output


def test_the_command_prints_the_list(tmp_path: Path) -> None:
    text = made(tmp_path, pit(1, tmp_path), pit(2, tmp_path))
    done = CliRunner().invoke(main, ["acl", *(str(tmp_path / f"feltd-{n}.toml") for n in (1, 2))])
    assert (done.exit_code, done.output) == (0, text)
    assert CliRunner().invoke(main, ["acl", str(tmp_path / "none.toml")]).exit_code == 2


@pytest.mark.system
def test_acl_keeps_edges_out_of_the_topics_of_another_edge(site: Site) -> None:
    """Whatever each password may do, no event, result, command or availability of edge 1 is another's."""
    own = topics(site="s", table="rou-1", device="d-1", edge="edge-1")
    judge = Visitor(site, JUDGE)
    users = ("edge-2", "display", "reader", "console")
    for user in users if at_length(0, 1) else users[:2]:
        for topic in own if at_length(0, 1) else own[::3]:
            site.publish(user, topic, user.encode())
        # A will is written by the broker itself, in the name of who vanished.
        vanish(site, user, "felt/1/s/edge/edge-1/availability")
    judge.say("felt/1/s/edge/end/availability")
    heard = judge.heard()
    judge.leave()
    assert set(heard) <= {
        ("felt/1/s/table/rou-1/device/d-1/cmd/power", "console"),
        ("felt/1/s/table/rou-1/round/cmd/replay", "console"),
        ("felt/1/s/table/rou-1/round/cmd/replay", "reader"),
    }


def vanish(site: Site, user: str, topic: str) -> None:
    """Connect with a will there, and be gone without a word."""
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set(user, password(user))
    client.will_set(topic, user.encode(), 1, retain=True)
    client.connect("127.0.0.1", site.port)
    while not client.is_connected():
        client.loop(0.1)
    sock: Any = client.socket()
    sock.close()


@pytest.mark.system
@pytest.mark.parametrize("keys", [True, False])
async def test_the_password_of_an_edge_is_not_enough_where_there_are_keys(
    site: Site, tmp_path: Path, keys: bool
) -> None:
    """A number of the wheel under the next seq, before the edge tells its own: refused with keys, else in doubt."""
    text = pit(1, tmp_path, site.port)
    if keys:
        (tmp_path / "mac").mkdir()
        make_mac_key(tmp_path / "mac/edge-1.key")
        text = text.replace("[edge]", f'[edge]\nmac_key_file = "{tmp_path}/mac/edge-1.key"')
        text = text.replace("[rules]", f'[rules]\nmac_key_folder = "{tmp_path}/mac"')
    edge = Edge(parse(text), Journal(tmp_path / "edge-1.db"), now=lambda: START)
    consumer = Consumer(parse(text), Journal(tmp_path / "rules.db"))
    running = [asyncio.create_task(process.run()) for process in (edge, consumer)]
    await until(lambda: edge.connected and consumer.connected, "connected")
    happened(edge, "rou-1", 4)
    await until(lambda: consumer.position("rou-1") == 4, "the rules have the first four")
    source = "felt/1/s/table/rou-1/device/d-1"
    forged = Envelope("edge-1:rou-1:5", source, START, BallLanded("36"), 5, journal=edge.journal.name)
    site.publish("edge-1", f"{source}/event/ball.landed", encode_envelope(forged))
    code = "events.forged" if keys else "events.conflict"
    if keys:
        await until(lambda: ("rou-1", code) in consumer._alarms, "it was refused")
        assert consumer.position("rou-1") == 4
    else:
        await until(lambda: consumer.position("rou-1") == 5, "it was believed")
    happened(edge, "rou-1", 6, 4)
    await until(lambda: consumer.position("rou-1") == 6, "the rules have all")
    await until(lambda: ("rou-1", code) in consumer._alarms, "it was noticed")
    ends = [msgspec.json.decode(row.data) for row in rows(consumer.journal)["rou-1"] if row.type == "resolved"]
    codes = [row.data for row in rows(consumer.journal)["rou-1"] if row.type == "irregular"]
    assert [end["result"]["outcome"]["pocket"] for end in ends] == (["17"] if keys else ["36"])
    assert bool(codes) != keys
    async with connect(site.settings("reader"), "") as reader:
        topic = f"felt/1/s/table/rou-1/alert/rules-{code.replace('.', '-')}"
        await reader.subscribe(topic)
        [alert] = await asyncio.wait_for(reader.messages(), PATIENCE)
        assert msgspec.json.decode(alert.payload)["code"] == code
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    edge.journal.close()
    consumer.journal.close()


# ---- client ids


async def until(done: Any, what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not done():  # noqa: ASYNC110 - in several processes
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(what) from None


async def thrown_out(site: Site, identifier: str, user: str, attackers: list[tuple[str, str]]) -> bool:
    """Whether somebody else's client ids end a session."""
    async with connect(site.settings(user), identifier) as session:
        lost = asyncio.create_task(session.until_lost())
        for other, id_ in attackers:
            me = ("-p", str(site.port), "-u", other, "-P", password(other), "-i", id_, "-t", "x", "-m", "x")
            await asyncio.to_thread(run, program("mosquitto_pub"), *me)
        try:  # the broker has met all of them: it answers us now, or not any more
            await session.subscribe(edge_topic("s", "+", "availability"))
        except BrokerLost:
            await asyncio.wait([lost])
            assert isinstance(lost.exception(), BrokerLost)
            return True
        lost.cancel()
        await asyncio.wait([lost])
        return False


@pytest.mark.system
async def test_acl_keeps_other_clients_from_the_session_of_the_rules(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their client id, plain or with what another password makes of it. With plain ids anybody could."""
    plain = "feltd-rules-rules"
    guesses = [("display", plain), ("edge-2", plain), ("display", bound(plain, password("display")))]
    assert not await thrown_out(site, plain, "rules", guesses)
    with monkeypatch.context() as patch:
        patch.setattr(connection, "bound", lambda identifier, _password: identifier)
        assert await thrown_out(site, plain, "rules", guesses)


@pytest.mark.system
async def test_several_tools_of_one_user_are_there_at_once(site: Site) -> None:
    """`feltd watch` twice, say: their ids are the broker's own."""
    async with connect(site.settings("console"), "") as one, connect(site.settings("console"), "") as two:
        for session in (one, two):
            await session.subscribe("felt/1/s/edge/+/availability")
        site.publish("edge-1", "felt/1/s/edge/edge-1/availability", b"online")
        for session in (one, two):
            [message] = await asyncio.wait_for(session.messages(), PATIENCE)
            assert message.payload == b"online"


def test_a_client_id_is_the_same_after_a_restart_and_of_one_password() -> None:
    first = bound("feltd-edge-edge-1", "secret")
    assert first == bound("feltd-edge-edge-1", "secret")
    assert first.startswith("feltd-edge-edge-1-")
    others = {bound("feltd-edge-edge-1", "other"), bound("feltd-edge-edge-2", "secret")}
    assert first not in others
    assert "secret" not in first
    assert bound("feltd-edge-edge-1", None) == "feltd-edge-edge-1"
    assert bound("", "secret") == ""


# ---- availability


@pytest.mark.system
async def test_a_forged_offline_stands_no_longer_than_a_moment(site: Site, tmp_path: Path) -> None:
    """The edge hears its own availability by the access list; who forges it here has the edge's own password."""
    edge = Edge(parse(pit(1, tmp_path, site.port)), Journal(tmp_path / "edge-1.db"), now=lambda: START)
    consumer = Consumer(parse(pit(1, tmp_path, site.port)), Journal(tmp_path / "rules.db"))
    running = [asyncio.create_task(process.run()) for process in (edge, consumer)]
    await until(lambda: edge.connected and consumer.connected, "connected")
    async with connect(site.settings(JUDGE), "") as judge:
        for name in ("edge-1", "rules"):
            topic = edge_topic("s", name, "availability")
            await judge.subscribe(topic)
            await heard(judge, topic, b"online")
            for payload in (b"offline", b"gone"):
                await judge.publish(topic, payload, retain=True)
                await heard(judge, topic, payload)
                await heard(judge, topic, b"online")
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    edge.journal.close()
    consumer.journal.close()


async def heard(session: Session, topic: str, payload: bytes) -> None:
    """That, under that topic, and nothing else in between that stays."""
    async with asyncio.timeout(PATIENCE):
        while not any((one.topic, one.payload) == (topic, payload) for one in await session.messages()):
            pass


# ---- an edge whose list is newer than its journal, and one that is gone


@pytest.mark.system
async def test_forget_clears_what_the_list_lets_no_process_clear(site: Site, tmp_path: Path) -> None:
    """An edge that is in no configuration any more: its topics are nobody's but maintenance's."""
    left = {
        "felt/1/s/edge/edge-9/availability": b"offline",
        "felt/1/s/edge/edge-9/info": b"{}",
        "felt/1/s/table/rou-9/device/d-1/meta": b'{"driver":"cammegh_ss2","edge":"edge-9"}',
        "felt/1/s/table/rou-9/device/d-1/state": b"{}",
        "felt/1/s/table/rou-9/alert/d-1-device-offline": b"{}",
    }
    config = parse(pit(1, tmp_path, site.port))
    async with connect(site.settings(JUDGE), "") as judge:
        for topic, payload in left.items():
            await judge.publish(topic, payload, retain=True)
        await judge.drained()
        with pytest.raises((BrokerLost, BaseExceptionGroup)):
            await forget(replace(config, maintenance=Maintenance()), "edge-9")
        assert set(left) <= set(await forget(config, "edge-9"))
        await judge.subscribe("felt/1/#")
        await judge.publish("felt/1/s/end", b"")
        async with asyncio.timeout(PATIENCE):
            [end] = await judge.messages()
    assert end.topic == "felt/1/s/end"


@pytest.mark.system
async def test_retained_state_of_a_removed_table_stops_no_edge(site: Site, tmp_path: Path) -> None:
    """Its last events were not sent before the table was taken out: the broker refuses them, the others are sent."""
    text = pit(1, tmp_path, site.port)
    edge = Edge(parse(text), Journal(tmp_path / "edge-1.db"), now=lambda: START)
    old = [row for one in ("gone-1", "rou-1") for row in happened(edge, one)]
    assert len(old) == 2 * len(SPIN)
    consumer = Consumer(parse(text), Journal(tmp_path / "rules.db"))
    running = [asyncio.create_task(process.run()) for process in (edge, consumer)]
    await until(lambda: edge.outbox.depth == 0, "the outbox is empty")
    await until(lambda: consumer.position("rou-1") == len(SPIN), "the rules have them")
    assert [row.type for row in rows(consumer.journal)["rou-1"]] == ["opened", "bets-closed", "resolved"]
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    edge.journal.close()
    consumer.journal.close()


def happened(edge: Edge, table: str, to: int = len(SPIN), after: int = 0) -> list[Row]:
    """A spin at `table`, or the part of it after an event to another, stands in the journal."""
    entries = [Entry(table, "d-1", type_of(one), START, encode_data(one)) for one in SPIN[after:to]]
    return edge.append(entries, {})
