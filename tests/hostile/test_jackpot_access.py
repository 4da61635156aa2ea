"""Jackpots on a real broker with its access list: the console reads and orders, and no other user does."""

import asyncio
import os
import signal
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from helpers import PATIENCE
from structlog.testing import capture_logs

from daemon.broker import suspensions
from daemon.cli.access_list import access_list
from daemon.config.model import load
from daemon.console.site.pools import Pools
from daemon.jackpots.process import Jackpots
from daemon.journal.signing import Key, make_key
from daemon.journal.store import Journal
from daemon.read_model import SiteState
from protocols.contract.commands import Reply, Request, signed_bytes
from protocols.contract.jackpots import Adjust, Propose, jackpot_topic
from tests.system.test_systemd import Broker, password, program, run

USERS = ("e", "rules", "console", "jackpots", "reader", "display", "maintenance")
TOPIC = jackpot_topic("s", "hall", "cmd/propose")
CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
password_file = "{folder}/e"
[rules]
password_file = "{folder}/rules"
[jackpots]
password_file = "{folder}/jackpots"
order_public_key = "{folder}/orders.pem.pub"
[mqtt]
port = {port}
username = "console"
password_file = "{folder}/console"
[[table]]
name = "x-1"
[[jackpot]]
name = "hall"
tables = ["x-1"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "0.5"
"""


class Hall(Broker):
    """The shipped configuration of mosquitto with the users of one computer."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "feltd.toml"
        self.key = make_key(folder / "orders.pem")
        self.path.write_text(CONFIG.format(folder=folder, port=self.port), encoding="utf-8")
        for user in USERS:
            (folder / user).write_text(password(user) + "\n")
        self.grant(access_list([(self.path, load(self.path))]))
        self._write(folder / "feltd.passwd", "".join(f"{user}:{password(user)}\n" for user in USERS))
        assert run(program("mosquitto_passwd"), "-U", folder / "feltd.passwd").returncode == 0

    def publish(self, user: str, topic: str, payload: bytes) -> None:
        """As anybody can who has the password of `user`."""
        me = ("-p", str(self.port), "-u", user, "-P", password(user), "-q", "1")
        run(program("mosquitto_pub"), *me, "-t", topic, "-m", payload.decode())


def order(person: str, key: Key | None = None) -> tuple[str, bytes]:
    """A proposal with its id, signed where there is a key."""
    change = msgspec.to_builtins(Propose(person, Adjust("hidden", 5, "audit")))
    del change["order"]
    args = msgspec.Raw(msgspec.json.encode(change))
    name = uuid.uuid4().hex
    request = Request(name, datetime.now(UTC) + timedelta(seconds=60), args)
    if key is not None:
        signature = key.sign(signed_bytes(TOPIC, request)).hex()
        request = msgspec.structs.replace(request, signature=signature)
    return name, msgspec.json.encode(request)


ADDED = """
[[table]]
name = "x-2"
[[jackpot]]
name = "new"
tables = ["x-2"]
counts = "devices"
wins = "devices"
seed = 5000
visible = "0.5"
"""


@pytest.mark.system
async def test_a_pool_that_the_list_does_not_know_is_suspended_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker refuses its topics; the pool beside it is kept, and it goes on when the list is mended."""
    monkeypatch.setattr(suspensions, "RETRY_S", 0.3)
    with Hall(tmp_path) as broker:
        broker.path.write_text(broker.path.read_text() + ADDED, encoding="utf-8")
        config = load(broker.path)
        keeper = Jackpots(config, Journal(tmp_path / "jackpots.db"))
        site = SiteState.of_console(config, lambda: datetime.now(UTC))
        pools = Pools(site, lambda: datetime.now(UTC))
        answers: dict[str, Reply] = {}
        pools.on_reply.append(lambda _pool, reply: answers.update({reply.id: reply}))

        def suspended() -> set[str]:
            return set(site.edges["jackpots"].info.suspended) if "jackpots" in site.edges else set()

        def shown(name: str) -> bool:
            view = pools.get(name)
            return view is not None and view.level is not None

        with capture_logs() as logs:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                tasks = [group.create_task(one) for one in (keeper.run(), site.run("console"), pools.run())]
                await site.until(lambda: suspended() >= {"jackpot new"} and shown("hall"))
                assert "jackpot hall" not in suspended()
                assert not shown("new")
                name, request = order("ana", broker.key)
                await site.publish(TOPIC, request)
                await site.until(lambda: name in answers)
                assert answers[name].status == "done"
                broker.grant(access_list([(broker.path, config)]))
                os.kill(broker._process.pid, signal.SIGHUP)
                await site.until(lambda: not suspended() and shown("new"))
                for task in tasks:
                    task.cancel()
        keeper.journal.close()
    said = [line["event"] for line in logs]
    assert "broker.lost" not in said
    told = [line for line in logs if line["event"] == "table.suspended"]
    assert {line["table"] for line in told} <= {"jackpot new", "x-2"}
    assert all("feltd acl" in line["remedy"] for line in told)


@pytest.mark.system
async def test_the_console_alone_orders_and_the_jackpots_alone_tell(tmp_path: Path) -> None:
    with Hall(tmp_path) as broker:
        config = load(broker.path)
        journal = Journal(tmp_path / "jackpots.db")
        keeper = Jackpots(config, journal)
        site = SiteState.of_console(config, lambda: datetime.now(UTC))
        pools = Pools(site, lambda: datetime.now(UTC))
        answers: dict[str, Reply] = {}
        pools.on_reply.append(lambda _pool, reply: answers.update({reply.id: reply}))
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in (keeper.run(), site.run("console"), pools.run())]

            def complete() -> bool:
                view = pools.get("hall")
                return view is not None and None not in (view.level, view.books, view.last)

            await site.until(complete)  # its first entry was told before the console came: by replay
            topic = TOPIC
            for user in ("e", "rules", "jackpots", "reader", "display", "maintenance"):
                await asyncio.to_thread(broker.publish, user, topic, order("mallory")[1])
            for leaf in ("level", "books", "event/won", "cmd/propose/result"):
                for user in ("e", "rules", "reader", "display", "maintenance"):
                    await asyncio.to_thread(broker.publish, user, jackpot_topic("s", "hall", leaf), b'{"pool":"evil"}')
            unsigned, request = order("ana")
            await site.publish(topic, request)  # by the console's password alone
            await site.until(lambda: unsigned in answers)
            assert "the console did not sign it" in answers.pop(unsigned).text
            name, request = order("ana", broker.key)
            await site.publish(topic, request)
            await site.until(lambda: name in answers)
            assert answers[name].status == "done"
            assert [one.person for one in keeper.books["hall"].proposals] == ["ana"]
            assert len(answers) == 1
            assert site.refused == 0
            view = pools.get("hall")
            assert view is not None
            await site.until(lambda: view.last is not None and view.last.seq == journal.last("hall"))
            assert view.fault == ""
            for task in tasks:
                task.cancel()
        journal.close()
