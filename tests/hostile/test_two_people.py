"""One person who wants to be two: on the broker, in the names of the books, at the command line."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from daemon.broker.mac_keys import make_mac_keys
from daemon.broker.session import Message
from daemon.cli.main import main
from daemon.config.model import parse
from daemon.jackpots.process import Jackpots
from daemon.journal.signing import Key, make_key, public_path
from daemon.journal.store import Journal
from protocols.contract.commands import Reply, Request, signed_bytes
from protocols.contract.jackpots import Adjust, Approve, Order, Propose, jackpot_topic
from protocols.contract.people import same_person

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CONFIG = """\
[site]
name = "s"
[edge]
name = "e"
[[table]]
name = "x-1"
[[jackpot]]
name = "red"
tables = ["x-1"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "0.5"
[[jackpot]]
name = "blue"
tables = ["x-1"]
counts = "devices"
wins = "devices"
seed = 10000
visible = "0.5"
[jackpots]
"""


class Books:
    """The process of the jackpots, and orders that reach it over the broker."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.journal = Journal(folder / "books.db")
        self.keeper = Jackpots(parse(CONFIG + settings), self.journal, now=lambda: NOON)
        self.count = 0

    def request(self, order: Order) -> Request:
        said = msgspec.to_builtins(order)
        del said["order"]
        self.count += 1
        return Request(f"r{self.count}", NOON + timedelta(seconds=10), msgspec.Raw(msgspec.json.encode(said)))

    def send(self, request: Request, name: str, pool: str = "red") -> Reply:
        topic = jackpot_topic("s", pool, f"cmd/{name}")
        reply = self.keeper.obey(pool, name, Message(topic, msgspec.json.encode(request)))
        assert reply is not None
        return reply


def signed(key: Key, request: Request, name: str, pool: str = "red") -> Request:
    """As the console signs it."""
    statement = signed_bytes(jackpot_topic("s", pool, f"cmd/{name}"), request)
    return msgspec.structs.replace(request, signature=key.sign(statement).hex())


@pytest.fixture
def key(tmp_path: Path) -> Key:
    return make_key(tmp_path / "orders.pem")


@pytest.fixture
def books(tmp_path: Path, key: Key) -> Iterator[Books]:
    assert key.id
    one = Books(tmp_path, f'order_public_key = "{public_path(tmp_path / "orders.pem")}"')
    yield one
    one.journal.close()


def test_whoever_may_publish_orders_proposes_and_approves_nothing(books: Books, key: Key) -> None:
    """The user of [mqtt] may publish on the topics of orders; it has not the console's key."""
    change = Adjust("visible", 500, "for a friend")
    refused = books.send(books.request(Propose("ana", change)), "propose")
    assert refused.status == "refused"
    assert "the console did not sign it" in refused.text
    assert not books.keeper.books["red"].proposals

    true = signed(key, books.request(Propose("ana", change)), "propose")
    assert books.send(true, "propose").status == "done"
    [proposal] = books.keeper.books["red"].proposals
    approve = books.request(Approve("nobody", proposal.id))
    for forged in (
        approve,
        msgspec.structs.replace(approve, signature="00" * 64),
        msgspec.structs.replace(approve, signature="x"),
        msgspec.structs.replace(approve, signature=true.signature),
    ):
        assert books.send(forged, "approve").status == "refused"
    assert books.keeper.books["red"].proposals == (proposal,)


def test_a_signed_order_is_of_its_pool_its_kind_its_time_and_its_words(books: Books, key: Key) -> None:
    request = signed(key, books.request(Propose("ana", Adjust("visible", 500, "audit"))), "propose")
    longer = msgspec.structs.replace(request, expires=NOON + timedelta(seconds=60))
    other = msgspec.structs.replace(request, args=msgspec.Raw(bytes(request.args).replace(b"500", b"900")))
    again = msgspec.structs.replace(request, id="another")
    for forged, pool in ((request, "blue"), (longer, "red"), (other, "red"), (again, "red")):
        assert "did not sign" in books.send(forged, "propose", pool).text
    assert "did not sign" in books.send(request, "withdraw").text
    assert books.send(request, "propose").status == "done"


def test_without_a_key_no_order_is_obeyed_but_where_the_configuration_says_so(tmp_path: Path) -> None:
    for settings, status in (("", "refused"), ("insecure = true", "done")):
        (tmp_path / status).mkdir()
        books = Books(tmp_path / status, settings)
        reply = books.send(books.request(Propose("ana", Adjust("visible", 500, "audit"))), "propose")
        assert reply.status == status
        assert ("order_public_key" in reply.text) == (status == "refused")
        books.journal.close()


@pytest.mark.parametrize("second", ["sam", "SAM", " Sam ", "ｓａｍ", "s\u200bam", "saM\u00ad"])
def test_the_same_name_written_otherwise_is_the_same_person(books: Books, key: Key, second: str) -> None:
    propose = signed(key, books.request(Propose("sam", Adjust("visible", 500, "audit"))), "propose")
    assert books.send(propose, "propose").status == "done"
    [proposal] = books.keeper.books["red"].proposals
    approve = signed(key, books.request(Approve(second, proposal.id)), "approve")
    reply = books.send(approve, "approve")
    assert (reply.status, reply.text) == ("refused", "sam proposed it: another person must approve it")


@pytest.mark.parametrize(("first", "second"), [("sam", "openid:sam:4711"), ("openid:sam:4711", "sue")])
def test_an_account_here_and_one_of_the_provider_are_perhaps_one_person(
    books: Books, key: Key, first: str, second: str
) -> None:
    """The books refuse it: the console may not have read what was proposed or confirmed."""
    propose = signed(key, books.request(Propose(first, Adjust("visible", 500, "audit"))), "propose")
    assert books.send(propose, "propose").status == "done"
    [proposal] = books.keeper.books["red"].proposals
    reply = books.send(signed(key, books.request(Approve(second, proposal.id)), "approve"), "approve")
    assert reply.status == "refused"
    assert "a person may have both kinds" in reply.text


def test_a_person_of_a_provider_who_changes_the_shown_name_stays_the_same() -> None:
    assert same_person("openid:sam:4711", "openid:samuel:4711")
    assert same_person("openid:sam:4711", "openid::4711")
    assert not same_person("openid:sam:4711", "openid:sam:4712")
    assert not same_person("sam", "sue")


@pytest.mark.parametrize("words", [("red/pool", "approve", "person=ana"), ("x-1/panel", "pay", "person=rui")])
def test_feltd_command_says_who_gives_orders_about_jackpots(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(CONFIG, encoding="utf-8")
    said = CliRunner().invoke(main, ["command", "-c", str(path), *words])
    assert said.exit_code == 2
    assert "a user of the console gives orders, at /jackpots" in said.output


def test_check_refuses_pools_whose_orders_nobody_can_prove(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    make_mac_keys(tmp_path, "e", "s")
    for settings, text in (
        ("", "feltd journal key"),
        (f'order_public_key = "{tmp_path}/none.pub"', "is not there"),
        (f'order_public_key = "{tmp_path}/none.pub"', "note: console.order_key is not named"),
        ("insecure = true", "good"),
    ):
        path.write_text(CONFIG.replace('"blue"\ntables', '"blue"\nbet = "b"\ntables') + settings, encoding="utf-8")
        assert text in CliRunner().invoke(main, ["check", "-c", str(path)]).output


def test_the_user_of_watch_and_command_cannot_publish_orders(tmp_path: Path) -> None:
    """Where the console has a user of its own, the access list grants orders to it alone."""
    users = 'password_file = "/j"\n[mqtt]\nusername = "tools"\npassword_file = "/t"\n'
    users += '[console]\nusername = "console"\npassword_file = "/c"\n'
    text = CONFIG.replace("[edge]\n", '[edge]\npassword_file = "/e"\n') + users
    path = tmp_path / "feltd.toml"
    path.write_text(text, encoding="utf-8")
    listed = CliRunner().invoke(main, ["acl", str(path)])
    assert listed.exit_code == 0, listed.output
    blocks = {block.split("\n")[0]: block for block in listed.output.split("\nuser ")[1:]}
    order = "topic write felt/1/s/jackpot/+/cmd/+"
    assert order in blocks["console"]
    assert order not in blocks["tools"]
