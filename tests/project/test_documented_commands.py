"""Each command shown in the documents works as it is printed.

The shell lines of README.md, CONTRIBUTING.md and the pages of docs that people write are parsed by the program's own
options, and so are the commands named in prose. Those of RUN are run here in a small form, in the order in which a
technician would type them, against simulated devices, a broker, an edge and rules. PARSED_ONLY lists the commands that
are only parsed, with the reason.
"""

import asyncio
import contextlib
import csv
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from helpers import IDLE_S, NIGHTLY, PATIENCE, broker_may_be_late, said_by

from daemon.cli import configuration_check as check, doctor_facts, forget
from daemon.cli.main import main
from simulators.lab.broker import Broker, find_mosquitto, free_port

ROOT = Path(__file__).parents[2]
PAGES = tuple(
    path
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/how-to/*.md", "docs/explanation/*.md")
    for path in sorted(ROOT.glob(pattern))
)
FENCE = re.compile(r"(?ms)^```sh\n(.*?)^```")
INLINE = re.compile(r"`(feltd [^`]+)`")
OPERATORS = re.compile(r"[|;&]+")

PARSED_ONLY = {
    "feltd journal witness -c feltd.toml --public edge.pem.pub --public rules.pem.pub --public console.pem.pub": (
        "test_witness.py runs it until a checkpoint has arrived"
    ),
    "feltd reload": "it asks systemd; debian/try-systemd reloads the services under systemd",
    "make demo": "test_use.py and test_system.py run the demo; make itself installs packages",
    "make test": "it is what runs this",
    "make install": "it installs packages",
    "make deb": "it installs packages; debian/try runs what it builds",
    "make lint": "it is run beside the tests",
    "make docs": "the tests of the generated pages run what it runs",
}
# A minute each and more: `make nightly` runs them here, test_campaign.py and test_bench_*.py run what is in them.
LONG = (
    "feltd bench",
    "feltd campaign --rounds 1000 --seed 7",
    "feltd campaign --real --kills 40",
    "feltd campaign --rounds 1000000 --seed $seed",
    "feltd campaign --real --kills 500 --seed $seed",
    "feltd campaign --real --tables text,bac,studio --copies 5 --rounds 3000 --kills 200",
)
# Of a wire or a round that exists here, and in small form.
SMALL = {
    "/srv/backup/edge-7": "{folder}/backup",
    "acl feltd.toml": f"acl {ROOT}/systemd/feltd.toml",
    "acl /etc/feltd/feltd.toml": f"acl {ROOT}/systemd/feltd.toml",
    "/etc/feltd/$part-key.pem": "{folder}/journal-key.pem",
    "/etc/feltd/mac/$name.key": "{folder}/name.key",
    "/var/lib/feltd/edge/journal.db": "edge.db",
    "/mnt/stick": "{folder}/stick",
    "/root/passphrase": "{folder}/passphrase",
    "bac-12": "rou-3",
    "rou-3:2026-11-20:17": "{round}",
    "--rounds 1000000": "--rounds 5",
    "--rounds 1000": "--rounds 5",
    "--copies 5 --rounds 3000 --kills 200": "--kills 1",
    "--kills 500": "--kills 1",
    "--kills 40": "--kills 1",
    "$seed": "7",
    "tty:/tmp/wheel": "tty:{folder}/other-wheel",
    "/etc/feltd/": "{folder}/",
    "2026-11-20T12:00:00+08:00": "2020-01-01T00:00:00+08:00",
    "2026-11-21T00:00:00+08:00": "2099-01-01T00:00:00+08:00",
    "journal.db": "edge.db",
    "key.pem.pub": "journal-key.pem.pub",
    "journal-key.pem.pub.pub": "journal-key.pem.pub",
}
SMALL_BENCH = ["--rates", "100", "--seconds", "1"]


def pieces(line: str) -> Iterator[list[str]]:
    """The commands of a shell line, without what is before and after them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;<>&")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not OPERATORS.fullmatch(word):
            words.append(word)
            continue
        if ">" in words:
            words = words[: words.index(">")]
        if words[:1] == ["sudo"]:
            words = words[3:] if words[1:2] == ["-u"] else words[1:]
        if words[:1] in (["then"], ["do"]):
            words = words[1:]
            if words[:1] == ["sudo"]:
                words = words[1:]
        if words and Path(words[0]).name in ("feltd", "make"):
            yield [Path(words[0]).name, *words[1:]]
        words = []


def shown() -> dict[str, str]:
    """Each command of a fenced block, and the page that shows it first."""
    found: dict[str, str] = {}
    for page in PAGES:
        for block in FENCE.findall(page.read_text(encoding="utf-8")):
            for line in re.sub(r"(\\|(?<=\|))\n", " ", block).splitlines():
                for words in pieces(line):
                    found.setdefault(" ".join(words), str(page.relative_to(ROOT)))
    return found


SHOWN = shown()


def parsed(words: list[str]) -> click.Context:
    """The command as click understands it. Raises UsageError."""
    context = main.make_context("feltd", list(words), resilient_parsing=False)
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:
            return context
        name, command, more = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name or "", more, parent=context)
    return context


def test_the_pages_show_commands() -> None:
    assert len(SHOWN) > 25
    assert set(SHOWN.values()) >= {"README.md", "docs/how-to/install.md", "docs/how-to/run-the-campaign.md"}
    assert set(PARSED_ONLY) <= set(SHOWN), "a reason for what no page shows"


@pytest.mark.parametrize("line", [line for line in SHOWN if line.startswith("feltd")])
def test_a_command_of_a_page_is_one_of_the_program(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("rou-3.ndjson", "x.capture", "journal.db", "key.pem.pub"):
        (tmp_path / name).touch()
    (tmp_path / "witness").mkdir()
    asks = pytest.raises(click.exceptions.Exit) if "--help" in line else contextlib.nullcontext()
    with asks, parsed(shlex.split(line.replace("$seed", "7"))[1:]):
        pass


@pytest.mark.parametrize("line", [line for line in SHOWN if line.startswith("make")])
def test_a_target_of_a_page_is_one_of_make(line: str) -> None:
    targets = re.findall(r"(?m)^([\w./%-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    patterns = [target.replace(".", r"\.").replace("%", r"[\w.-]+") for target in targets]
    assert any(re.fullmatch(pattern, line.split()[1]) for pattern in patterns)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_command_that_prose_names_exists(page: Path) -> None:
    """Its words as far as they are commands and options; values may be missing there."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for line in INLINE.findall(prose):
        command: click.Command = main
        for word in shlex.split(line)[1:]:
            if word.startswith("-"):
                options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
                assert word in {*options, "--help"}, line
            elif isinstance(command, click.Group) and word not in ("…", "2"):
                found = command.get_command(click.Context(command), word)
                assert found is not None, line
                command = found


# ---- run


CONFIG = """\
[site]
name = "lisboa"
[edge]
name = "edge-1"
journal = "{folder}/edge.db"
[journal]
key = "{folder}/journal-key.pem"
[rules]
insecure = true
journal = "{folder}/rules.db"
[console]
store = "{folder}/console.db"
journal = "{folder}/actions.db"
[mqtt]
port = {port}
[[table]]
name = "rou-3"
ruleset = "macau.roulette"
[table.options]
betting = "no_more_bets"
[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "serial://{folder}/wheel"
options = {{ shortest_spin = 0.5 }}
[jackpots]
insecure = true
journal = "{folder}/jackpots.db"
order_public_key = "{folder}/orders-key.pem.pub"
[[jackpot]]
name = "hall"
tables = ["rou-3"]
counts = "devices"
wins = "devices"
seed = 1000
visible = "0.5"
[[table]]
name = "cus-1"
ruleset = "macau.cussec"
[[table.device]]
name = "shaker-1"
driver = "fdl_shaker"
url = "tcp://127.0.0.1:{shaker}"
"""
HURRIED = ("--speed", "20")
WATCHED = {
    "feltd watch -c feltd.toml": " ball landed: ",
    "feltd watch bac-12 -c feltd.toml": " round ",
    "feltd watch rou-3/wheel-1 -c feltd.toml": " ball landed: ",
    "feltd watch -c feltd.toml --since 10m": " opens\n",
    "feltd watch -c feltd.toml --json": '"type":"resolved"',
}
"""The lines that follow a site, and what each must say."""


class Floor:
    """A folder with a configuration, in which commands are typed. `ran`: the shown lines that were."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: set[str] = set()
        self.round = ""
        self._children = contextlib.ExitStack()

    def _words(self, line: str) -> list[str]:
        """As it is shown, with what exists here in the place of what exists there."""
        for there, here in SMALL.items():
            line = line.replace(there, here.format(folder=self.folder, round=self.round))
        return shlex.split(line)[1:]

    def type(self, line: str, *more: str, stdin: str = "", refusals: tuple[str, ...] = ()) -> str:
        """One line of a page, run to its end in this process: what it writes. It fails with one of `refusals` or not
        at all.
        """
        self.ran.add(line)
        with contextlib.chdir(self.folder):
            done = CliRunner().invoke(main, [*self._words(line), *more], input=stdin)
        if any(one in done.output for one in refusals):
            return done.output
        assert done.exit_code == 0, f"{line}: {done.exit_code} {done.exception!r}\n{done.output[-2000:]}"
        return done.stdout

    def type_until(self, said: str, line: str, *refusals: str) -> None:
        """One line, again and again: it may fail with `refusals` until it says `said`."""
        ends = time.monotonic() + 5 * IDLE_S
        while said not in (answer := self.type(line, refusals=refusals)):
            assert time.monotonic() < ends, f"{line}: {answer}"
            time.sleep(0.05)

    @contextlib.contextmanager
    def typed(self, line: str, *more: str) -> Iterator[subprocess.Popen[str]]:
        """One that goes on until it is interrupted."""
        self.ran.add(line)
        with subprocess.Popen(
            [sys.executable, "-m", "daemon.cli", *self._words(line), *more],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                yield process
                process.terminate()  # SIGINT is ignored in what a shell starts in the background
                assert process.stdout is not None
                while process.stdout.read(4096):  # a full pipe would keep it from its end
                    pass
                assert process.wait(IDLE_S) in (0, 130), line
            finally:
                process.kill()


@pytest.mark.system
@pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed")
@pytest.mark.timeout(3600)  # by its progress it ends long before
def test_the_commands_of_the_pages_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which they need each other."""
    broker_may_be_late(monkeypatch)
    for module, limit in ((doctor_facts, "CONNECT_TIMEOUT_S"), (check, "PROBE_TIMEOUT"), (forget, "READ_TIMEOUT_S")):
        monkeypatch.setattr(module, limit, PATIENCE)  # a busy computer answers late
    broker = Broker(tmp_path)
    with asyncio.Runner() as runner:
        runner.run(broker.start())
        try:
            _run_all(Floor(tmp_path), broker.port)
        finally:
            runner.run(broker.stop())


def _run_all(floor: Floor, port: int) -> None:
    shaker = free_port(floor)
    config = CONFIG.format(folder=floor.folder, port=port, shaker=shaker)
    (floor.folder / "feltd.toml").write_text(config, encoding="utf-8")
    floor.type("feltd journal key /etc/feltd/$part-key.pem")
    floor.type("feltd journal key /etc/feltd/orders-key.pem")
    with (
        floor.typed("feltd simulate cammegh_ss2 --listen tty:" + str(floor.folder / "wheel"), *HURRIED) as wheel,
        floor.typed(f"feltd simulate fdl_shaker --listen tcp://127.0.0.1:{shaker}", *HURRIED) as dice,
    ):
        for device in (wheel, dice):
            assert device.stdout is not None
            assert device.stdout.readline()
        _with_the_edge_stopped(floor)
        with floor.typed("feltd edge -c feltd.toml"), floor.typed("feltd rules -c feltd.toml"):
            _with_the_edge_running(floor)
    _with_its_journals(floor)
    _alone(floor)
    assert set(SHOWN) - floor.ran - set(PARSED_ONLY) - ({*LONG} if not NIGHTLY else set()) == set()


def _with_the_edge_stopped(floor: Floor) -> None:
    for line in (
        "feltd check -c feltd.toml",
        "feltd check -c feltd.toml --probe",
        "feltd check -c /etc/feltd/feltd.toml",
        "feltd detect",
    ):
        floor.type(line)
    capture = floor.folder / "x.capture"
    with floor.typed("feltd record rou-3/wheel-1 -c feltd.toml") as recording, capture.open("w") as written:
        while capture.stat().st_size < 20_000:
            assert recording.stdout is not None
            line = recording.stdout.readline()
            assert line, "the recording ended"
            written.write(line)
            written.flush()
    events = floor.type("feltd replay x.capture --driver cammegh_ss2")
    assert '"ball.landed"' in events
    assert '"pocket"' in floor.type("feltd resolve --ruleset macau.roulette", stdin=events)


def _with_the_edge_running(floor: Floor) -> None:
    with floor.typed("feltd jackpots -c feltd.toml"):
        _with_the_jackpots(floor)
    for line, until in WATCHED.items():
        with floor.typed(line) as watching:
            assert until in said_by(watching, until), line
    with floor.typed("feltd watch -c feltd.toml --table bac-12 --severity warning") as quiet:
        while not _catches(quiet, signal.SIGTERM):
            time.sleep(0.05)
    agitate = "feltd command -c feltd.toml cus-1/shaker-1 agitate"
    # The next round covers an open dome. A busy computer may lose the device for a moment, or answer late.
    floor.type_until("agitate: done", agitate, "agitate: ", "no answer")
    assert "ok       broker as edge" in floor.type("feltd doctor -c /etc/feltd/feltd.toml", refusals=("ok ",))
    # A process of the broker that a slow computer has not beaten in time is open.
    assert "PROCESSES" in floor.type("feltd status", "-c", "feltd.toml", refusals=("PROCESSES",))
    assert "edge-1" in floor.type("feltd fleet -c /etc/feltd/feltd.toml", refusals=("processes, ",))
    floor.type("feltd forget -c feltd.toml edge-7")
    floor.type("feltd forget edge-7", "-c", "feltd.toml")
    floor.type("feltd journal verify -c feltd.toml")
    floor.type("feltd journal verify -c /etc/feltd/feltd.toml")


def _catches(process: subprocess.Popen[str], number: signal.Signals) -> bool:
    """Whether a process has begun to handle a signal."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def _with_the_jackpots(floor: Floor) -> None:
    floor.type_until("hall  10.00 MOP", "feltd jackpot -c feltd.toml", "feltd jackpots` running here")
    assert "the pool begins" in floor.type("feltd jackpot -c feltd.toml --entries 20")
    for option in ("--wins", "--check"):
        assert "books       balance" in floor.type(f"feltd jackpot -c feltd.toml {option}")
    assert json.loads(floor.type("feltd jackpot -c feltd.toml --json"))
    month = floor.type("feltd jackpot -c feltd.toml hall --csv --from 2026-11-01 --to 2026-12-01")
    rows = list(csv.DictReader(month.removeprefix("\ufeff").splitlines()))
    assert {row["type"] for row in rows} >= {"opening", "closing"}


def _with_its_journals(floor: Floor) -> None:
    exported = floor.type("feltd journal export -c feltd.toml rou-3")
    span = "--from 2026-11-20T12:00:00+08:00 --to 2026-11-21T00:00:00+08:00"
    assert floor.type(f"feltd journal export -c feltd.toml rou-3 {span}")
    (floor.folder / "rou-3.ndjson").write_text(exported, encoding="utf-8")
    results = floor.type("feltd journal export -c feltd.toml rou-3 --rules")
    floor.round = re.findall(r'"round":\s*"(rou-3:[^"]+)"', results)[0]
    assert "art." in floor.type("feltd journal recall -c feltd.toml rou-3 --rounds 3")
    assert floor.round in floor.type("feltd journal recall -c feltd.toml rou-3 --round rou-3:2026-11-20:17")
    floor.type("feltd journal verify --public key.pem.pub journal.db")
    (floor.folder / "witness").mkdir()
    floor.type("feltd journal verify -c feltd.toml --witness witness")
    floor.type("feltd journal verify --public key.pem.pub rou-3.ndjson")
    again = "feltd resolve --ruleset macau.roulette --option betting=no_more_bets --table rou-3 rou-3.ndjson"
    assert floor.round in floor.type(again)
    assert "good: journal" in floor.type("feltd backup /srv/backup/edge-7", "-c", "feltd.toml")
    _with_a_new_computer(floor)
    floor.type("feltd bundle", "-c", "feltd.toml")
    floor.type("feltd bundle -c feltd.toml")
    assert list(floor.folder.glob("feltd-lisboa-*.zip"))
    (floor.folder / "edge.db-signed").unlink()  # as where a copy was put back without it
    floor.type("feltd journal accept /var/lib/feltd/edge/journal.db")


def _with_a_new_computer(floor: Floor) -> None:
    """The backup of this one is opened, and refused where there are journals already."""
    (floor.folder / "passphrase").write_text("seven words that a thief does not guess\n", encoding="utf-8")
    floor.type("feltd backup /mnt/stick --passphrase-file /root/passphrase", "-c", "feltd.toml")
    (backup,) = (floor.folder / "stick").iterdir()
    backup.rename(backup.with_name("lisboa-edge-7.feltd-backup"))
    restore = "feltd restore /mnt/stick/lisboa-edge-7.feltd-backup --passphrase-file /root/passphrase"
    floor.type(restore, "-c", "other.toml", refusals=("has journals of its own",))


def _alone(floor: Floor) -> None:
    cards = [{"type": "card.drawn", "data": {"card": card}} for card in ("9D", "2C", "KH", "5S")]
    told = "\n".join(map(json.dumps, cards))
    assert '"winner":"player"' in floor.type("feltd resolve --ruleset macau.baccarat", stdin=told)
    with floor.typed("feltd simulate cammegh_ss2 --listen tty:/tmp/wheel") as device:
        assert device.stdout is not None
        assert "other-wheel" in device.stdout.readline()
    floor.type("feltd mac-keys -c /etc/feltd/feltd.toml")
    answers = "lisboa\nedge-7\n" + 100 * "\n"  # whatever is plugged in is left out
    floor.type("feltd init", "-c", "asked.toml", stdin=answers)
    by_options = (
        "feltd init --site lisboa --edge edge-7 --table rou-3=macau.roulette --option rou-3.betting=no_more_bets"
    )
    by_options += " --device rou-3/wheel-1=cammegh_ss2@serial:///dev/serial/by-id/NAME?baud=9600"
    floor.type(by_options, "-c", "given.toml")
    maria = "feltd console -c /etc/feltd/feltd.toml user add maria --role administrator"
    floor.type(maria, stdin="a password of some length\n")
    asked = floor.type("feltd console -c feltd.toml user confirm ines", refusals=("no user",))
    assert "no user" in asked
    (floor.folder / "console.db").unlink()
    floor.type(maria.replace("/etc/feltd/", ""), stdin="a password of some length\n")
    for line in (
        "feltd --help",
        "feltd acl feltd.toml",
        "feltd acl /etc/feltd/feltd.toml",
        "feltd devices fdl_shaker",
        "feltd devices shaker.clasp",
        "feltd figures macau.roulette",
    ):
        assert floor.type(line)
    _with_versions(floor)
    _with_certificates(floor)
    floor.type("feltd mac-key /etc/feltd/mac/$name.key")
    floor.type("feltd mac-key edge-7.key")
    for line in LONG if NIGHTLY else ():
        assert floor.type(line, *(SMALL_BENCH if line == "feltd bench" else ()))


def _with_versions(floor: Floor) -> None:
    path = floor.folder / "feltd.toml"
    before = path.read_text(encoding="utf-8")
    here = ("-c", "feltd.toml")
    add = "feltd table add rou-4=macau.roulette --why opening --option betting=no_more_bets"
    for line in (
        f"{add} --device wheel-1=cammegh_ss2@tcp://192.168.7.20:4002",
        "feltd table change rou-4 --area upstairs --option smallest_chip=50 --why limits",
        "feltd table remove rou-4 --why closed",
        "feltd config undo --why mistake",
    ):
        assert "is in use" in floor.type(line, *here, "--yes")
    assert "mistake" in floor.type("feltd config log", *here)
    assert floor.type("feltd config diff", *here) == "no difference\n"
    assert 'area = "upstairs"' in path.read_text(encoding="utf-8")
    path.write_text(before, encoding="utf-8")


def _with_certificates(floor: Floor) -> None:
    folder = ("--folder", str(floor.folder / "pki"))
    floor.type("feltd pki init --site lisboa", *folder)
    for words in ("broker --host 10.0.7.2 --host broker.lisboa.example", "edge-8", "rules", "edge-8-bridge"):
        floor.type(f"feltd pki issue {words}", *folder)
    assert "edge-8-bridge" in floor.type("feltd pki list", *folder)
    for name in ("edge-7", "edge-8"):
        text = CONFIG.format(folder=f"/var/lib/feltd/{name}", port=1883, shaker=5001).replace("edge-1", name)
        text = re.sub(r"(?s)\[jackpots\].*?(?=\[\[table\]\])", "", text)
        text = text.replace("[rules]", '[rules]\nusername = "rules"')
        text = text.replace("[journal]", f'username = "{name}"\n[journal]', 1)
        (floor.folder / f"{name}.toml").write_text(text, encoding="utf-8")
    assert "user edge-8\n" in floor.type("feltd acl edge-7.toml edge-8.toml")
    assert "user edge-8-bridge\n" in floor.type("feltd acl --bridged edge-7.toml edge-8.toml")
    site = ("-c", "feltd.toml")
    assert "require_certificate true" in floor.type("feltd broker", *site)
    assert "connection edge-1-bridge" in floor.type("feltd broker --bridge-to broker.lisboa.example", *site)
