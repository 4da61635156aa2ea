"""`feltd table` and `feltd config`: a change of the configuration in one act."""

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from daemon.broker.mac_keys import make_mac_keys
from daemon.cli import config_change, granted
from daemon.cli.access_list import access_list
from daemon.cli.common import BadInputError
from daemon.cli.config_change import CannotChange, Changes
from daemon.cli.first_configuration import FirstTable
from daemon.cli.main import main
from daemon.cli.table_edit import CannotEdit, TableChange, add_table, change_table, remove_table
from daemon.config.model import Config, load, parse
from daemon.reload import note_start, start_mistakes
from daemon.table_requests import Device

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "systemd/feltd.toml").read_text(encoding="utf-8")
HEAD = """\
# The casino.
[site]
name = "lisboa"
[edge]
name = "edge-1"
username = "edge"
[rules]
insecure = true
username = "rules"

# Beside the stairs.
[[table]]
name = "rou-1"
ruleset = "macau.roulette" # single zero
[table.options]
betting = "no_more_bets"

[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "tcp://10.0.0.5:4001"
options = { shortest_spin = 0.5 }

# Upstairs.
[[table]]
name = "cus-1"
ruleset = "macau.cussec"

[[table.device]]
name = "shaker-1"
driver = "fdl_shaker"
url = "tcp://10.0.0.5:4002"
"""
WHEEL = Device("wheel-1", "cammegh_ss2", "tcp://10.0.0.5:4003")
TWIN = FirstTable("rou-2", "macau.roulette", {"betting": "no_more_bets"}, (WHEEL,), "hall")


def table_of(text: str, name: str) -> dict[str, object]:
    (found,) = (one for one in tomllib.loads(text)["table"] if one["name"] == name)
    return dict(found)


def test_a_table_that_is_added_and_removed_leaves_the_file_as_it_was() -> None:
    added = add_table(HEAD, TWIN)
    assert added.startswith(HEAD)
    assert table_of(added, "rou-2") == {
        "name": "rou-2",
        "ruleset": "macau.roulette",
        "area": "hall",
        "options": {"betting": "no_more_bets"},
        "device": [{"name": "wheel-1", "driver": "cammegh_ss2", "url": "tcp://10.0.0.5:4003"}],
    }
    assert remove_table(added, "rou-2") == HEAD


@pytest.mark.parametrize(
    ("typed", "value"),
    [("0.5", 0.5), ("true", True), ('"a"', "a"), ("a", "a"), ("1, b = 2", "1, b = 2"), ("1 # }", "1 # }")],
)
def test_an_option_of_a_device_is_one_value_and_nothing_else(typed: str, value: object) -> None:
    wheel = Device("wheel-1", "cammegh_ss2", "tcp://10.0.0.5:4003", {"x": typed})
    added = add_table(HEAD, FirstTable("rou-2", "", {}, (wheel,)))
    assert tomllib.loads(added)["table"][-1]["device"][0]["options"] == {"x": value}
    put = change_table(HEAD, "cus-1", TableChange(devices=(wheel,)))
    assert tomllib.loads(put)["table"][-1]["device"][-1]["options"] == {"x": value}


@pytest.mark.parametrize("name", [one["name"] for one in tomllib.loads(EXAMPLE)["table"]])
def test_any_table_of_the_example_is_removed_and_nothing_else(name: str) -> None:
    before, after = tomllib.loads(EXAMPLE), tomllib.loads(remove_table(EXAMPLE, name))
    assert after["table"] == [one for one in before["table"] if one["name"] != name]
    assert {key: one for key, one in after.items() if key != "table"} == {
        key: one for key, one in before.items() if key != "table"
    }


def test_a_comment_belongs_to_the_table_below_it() -> None:
    without = remove_table(HEAD, "rou-1")
    assert "# The casino." in without
    assert "# Beside the stairs." not in without
    assert "# Upstairs.\n[[table]]" in without


def test_a_comment_behind_a_blank_line_stays_when_the_table_above_it_goes() -> None:
    own, note = "# The wheel is new.\n", "# Ask the pit before a change.\n\n# It is in the book.\n"
    head, rest = HEAD.split("\n# Upstairs.\n")
    without = remove_table(f"{head}{own}\n{note}\n# Upstairs.\n{rest}", "rou-1")
    assert without == remove_table(HEAD, "rou-1").replace("# Upstairs.", f"{note}\n# Upstairs.")
    assert remove_table(f"{HEAD}{own}\n{note}", "cus-1") == f"{remove_table(HEAD, 'cus-1')}\n{note}"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (TableChange(ruleset="angola.roulette"), 'ruleset = "angola.roulette"'),
        (TableChange(area="hall"), 'area = "hall"'),
        (TableChange(options={"betting": "timed"}), 'betting = "timed"'),
        (TableChange(options={"minimum": "50"}), "minimum = 50"),
        (TableChange(devices=(WHEEL,)), 'url = "tcp://10.0.0.5:4003"'),
        (TableChange(devices=(Device("sign-1", "alpha_sign", "tcp://10.0.0.5:4009"),)), 'name = "sign-1"'),
    ],
)
def test_a_change_is_one_line_or_a_device_more(change: TableChange, line: str) -> None:
    changed = change_table(HEAD, "rou-1", change)
    before, after = HEAD.splitlines(), changed.splitlines()
    assert line in after
    assert table_of(changed, "cus-1") == table_of(HEAD, "cus-1")
    assert len([one for one in before if one not in after]) <= 1
    assert "# Upstairs." in after


def test_a_device_and_an_option_go_again() -> None:
    gone = change_table(HEAD, "rou-1", TableChange(options={"betting": None}, without=("wheel-1",)))
    assert table_of(gone, "rou-1") == {"name": "rou-1", "ruleset": "macau.roulette", "options": {}}


def test_a_device_goes_with_its_own_comment_alone() -> None:
    sign = '[[table.device]]\nname = "sign-1"\ndriver = "alpha_sign"\nurl = "tcp://10.0.0.5:4009"\n'
    text = HEAD.replace("[[table.device]]", f"# The first sign.\n{sign}\n# The wheel.\n[[table.device]]", 1)
    gone = change_table(text, "rou-1", TableChange(without=("sign-1",)))
    assert gone == HEAD.replace("[[table.device]]", "# The wheel.\n[[table.device]]", 1)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda: add_table(HEAD, FirstTable("rou-1", "")), "is there already"),
        (lambda: add_table(HEAD, FirstTable("rou-2", "", {"a\n[mqtt]\nb": "1"})), "no name of an option"),
        (lambda: change_table(HEAD, "rou-1", TableChange(options={"a b": "1"})), "no name of an option"),
        (lambda: remove_table(HEAD, "rou-9"), "tables: rou-1, cus-1"),
        (lambda: change_table(HEAD, "rou-1", TableChange(without=("x",))), "its devices: wheel-1"),
        (lambda: change_table(HEAD, "rou-1", TableChange(options={"x": None})), "set here: betting"),
        (
            lambda: change_table(
                HEAD.replace('[table.options]\nbetting = "no_more_bets"', 'options = { betting = "timed" }'),
                "rou-1",
                TableChange(options={"minimum": "5"}),
            ),
            "edit it by hand",
        ),
        (lambda: remove_table('table = [{ name = "a" }, { name = "b" }]\n', "b"), "edit it by hand"),
        (lambda: change_table('[["table"]]\nname = "a"\n', "a", TableChange(area="x")), "edit it by hand"),
    ],
)
def test_what_cannot_be_edited_is_refused_with_the_remedy(edit: Callable[[], str], says: str) -> None:
    with pytest.raises(CannotEdit, match=says):
        edit()


class Recorded:
    """Broker and processes that note what they are told; `fails`: the call at which one refuses."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.told: list[str] = []
        self.lists: list[str] = []
        """The broker's access list each time that it reads it."""

    def refusals(self, _config: Config, _path: Path) -> list[str]:
        return []

    def reload_broker(self) -> None:
        self.lists.append(granted.INSTALLED.read_text(encoding="utf-8"))
        self._tell("broker")

    def reload(self) -> None:
        self._tell("processes")

    def use(self, _digest: str) -> bool:
        return True

    def console_notes(self, _config: Config) -> tuple[str, ...]:
        return ()

    def restart_console(self, _config: Config) -> None:
        self._tell("console")

    def _tell(self, whom: str) -> None:
        self.told.append(whom)
        if self.fails == whom:
            self.fails = ""
            raise CannotChange(f"the {whom} refuse")
        if self.fails == f"killed at {whom}":
            raise KeyboardInterrupt


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose access list the broker has, with a user that the site added."""
    folder = tmp_path / "etc"
    folder.mkdir()
    path = folder / "feltd.toml"
    path.write_text(HEAD, encoding="utf-8")
    monkeypatch.setattr(granted, "INSTALLED", folder / "feltd.acl")
    monkeypatch.setattr(config_change, "PASSWORDS", folder / "feltd.passwd")
    granted.INSTALLED.write_text(access_list([(path, load(path))]) + "user own\ntopic read own/#\n")
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    """All but the versions."""
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file() and "history" not in one.parts}


def changed(path: Path, services: Recorded, text: str) -> None:
    changes = Changes(path, services)
    with changes.locked():
        planned = changes.plan(text)
        changes.make(planned, "maria", "more tables")
        assert changes.settle(planned)


def test_file_and_access_list_change_together_and_each_version_is_kept(path: Path) -> None:
    services = Recorded()
    changed(path, services, add_table(HEAD, TWIN))
    assert services.told == ["broker", "processes", "broker"]
    assert load(path).table[-1].name == "rou-2"
    assert granted.INSTALLED.read_text() == access_list([(path, load(path))]) + "user own\ntopic read own/#\n"
    first, second = Changes(path, services).versions()
    assert (first.why, second.who, second.why) == (
        "edited by hand, or the first version",
        "maria",
        "more tables",
    )
    assert second.digest == load(path).digest
    assert Changes(path, services).text_of(1) == HEAD


def test_a_table_keeps_its_rights_until_no_process_uses_it(path: Path) -> None:
    """The edge goes on with a removed table until its round ends."""
    services = Recorded()
    changed(path, services, remove_table(HEAD, "rou-1"))
    between, after = services.lists
    need = access_list([(path, parse(HEAD))])
    assert granted.not_granted(between, need, {}) == {}
    assert any("rou-1" in topic for topics in granted.not_granted(after, need, {}).values() for topic in topics)


@pytest.mark.parametrize("fails", ["broker", "processes"])
def test_a_refused_change_leaves_everything_as_it_was(path: Path, fails: str) -> None:
    before = files_of(path.parent)
    services = Recorded(fails)
    with pytest.raises(CannotChange, match="everything is as before"):
        changed(path, services, add_table(HEAD, TWIN))
    assert files_of(path.parent) == before
    assert services.told[-2:] == ["broker", "processes"], "both are told of the way back"


@pytest.mark.parametrize("at", ["broker", "processes"])
def test_an_interrupted_change_is_undone_by_the_next(path: Path, at: str) -> None:
    before = files_of(path.parent)
    with pytest.raises(KeyboardInterrupt):
        changed(path, Recorded(f"killed at {at}"), add_table(HEAD, TWIN))
    assert files_of(path.parent) != before
    services = Recorded()
    with Changes(path, services).locked() as left:
        assert any(str(path) in line for line in left)
    assert files_of(path.parent) == before
    assert services.told == ["broker", "processes"]


def test_keys_beside_the_file_are_no_change_of_a_running_process(path: Path) -> None:
    """The configuration need not name them; a process notes them with what it read at its start."""
    make_mac_keys(path.parent, "edge-1", "lisboa")
    text = HEAD.replace('name = "edge-1"', f'name = "edge-1"\njournal = "{path.parent}/edge.db"')
    path.write_text(text, encoding="utf-8")
    granted.INSTALLED.write_text(access_list([(path, load(path))]))
    note_start(load(path), "edge")
    planned = Changes(path, Recorded()).plan(add_table(text, TWIN))
    assert start_mistakes(planned.config, path, "edge") == []


def test_two_changes_at_once_are_refused(path: Path) -> None:
    with Changes(path, Recorded()).locked(), pytest.raises(CannotChange, match="another change"):
        changed(path, Recorded(), add_table(HEAD, TWIN))


def test_a_list_with_another_computer_is_left_alone(path: Path) -> None:
    granted.INSTALLED.write_text("user edge-9\ntopic write x\n" + granted.INSTALLED.read_text())
    with pytest.raises(CannotChange, match="several computers"):
        changed(path, Recorded(), add_table(HEAD, TWIN))


@pytest.mark.skipif(not shutil.which("mosquitto_passwd"), reason="needs mosquitto's tools")
def test_a_device_that_speaks_mqtt_gets_its_user_and_keeps_its_password(path: Path) -> None:
    broker = "mqtt://127.0.0.1:1883/?hear=dice/out&say=dice/in"
    shaker = Device("shaker-2", "fdl_shaker", f"{broker}&username=link-2&password_file=/etc/feltd/mqtt/link-2")
    text = add_table(HEAD, FirstTable("cus-2", "macau.cussec", {}, (shaker,)))
    wanted = access_list([(path, parse(text))])
    users = [line.split()[1] for line in wanted.splitlines() if line.startswith("user ")]
    config_change.PASSWORDS.write_text("".join(f"{one}:x\n" for one in users if "2" not in one))
    changed(path, Recorded(), text)
    password = path.parent / "mqtt/device-cus-2-shaker-2"
    assert password.stat().st_mode & 0o777 == 0o600
    hashes = config_change.PASSWORDS.read_text()
    assert sum(line.startswith("device-cus-2-shaker-2:$7$") for line in hashes.splitlines()) == 1
    kept = password.read_text()
    changed(path, Recorded(), HEAD)
    changed(path, Recorded(), text)
    assert password.read_text() == kept


def run(path: Path, *words: str, stdin: str = "y\n") -> tuple[int, str]:
    done = CliRunner().invoke(main, [*words, "-c", str(path)], input=stdin)
    if done.exception is not None and not isinstance(done.exception, (SystemExit, BadInputError)):
        raise done.exception
    return done.exit_code, done.output


def test_the_commands_add_show_and_undo(path: Path) -> None:
    device = "wheel-1=cammegh_ss2@tcp://10.0.0.5:4003"
    words = ("table", "add", "rou-2=macau.roulette", "--option", "betting=no_more_bets", "--device", device)
    code, said = run(path, *words, "--why", "a twin", "--who", "ines", stdin="n\n")
    assert (code, path.read_text()) == (1, HEAD)
    assert '+name = "rou-2"' in said
    code, said = run(path, *words, "--why", "a twin", "--who", "ines")
    assert (code, "version 2 is in use" in said) == (0, True)
    assert run(path, "table", "change", "rou-2", "--area", "hall", "--why", "moved", "--yes")[0] == 0
    code, said = run(path, "config", "log")
    assert [line.split(maxsplit=3)[3].split(": ")[1] for line in said.splitlines()[:2]] == ["moved", "a twin"]
    assert '+area = "hall"' in run(path, "config", "diff", "2", "3")[1]
    assert run(path, "config", "diff")[1] == "no difference\n"
    assert run(path, "config", "undo", "--why", "not moved", "--yes")[0] == 0
    assert run(path, "config", "undo", "--to", "1", "--why", "all back", "--yes")[0] == 0
    assert path.read_text() == HEAD
    assert "no version 9; versions: 1 to 5" in run(path, "config", "undo", "--to", "9", "--why", "x")[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "rou-2=macau.roulete"), "ruleset = \"macau.roulete\"\n  no ruleset 'macau.roulete'; did you mean"),
        (("add", "rou-2=macau.roulette", "--option", "beting=x"), "beting"),
        (("add", "rou-2", "--device", "wheel-1=cammegh_ss2@tcp://10.0.0.5:4001"), "already belongs to rou-1/wheel-1"),
        (("add", "Rou 2"), "small letters, digits and hyphens"),
        (("add", "rou-2", "--device", "wheel-1"), "write DEVICE=DRIVER@URL"),
        (("change", "rou-1"), "name --ruleset, --area"),
        (("remove", "rou-7"), "tables: rou-1, cus-1"),
    ],
)
def test_a_mistake_is_said_at_its_field_and_nothing_is_changed(path: Path, words: tuple[str, ...], says: str) -> None:
    before = files_of(path.parent)
    code, said = run(path, "table", *words, "--why", "x", "--yes")
    assert (code, says in said) == (2, True), said
    assert files_of(path.parent) == before


def test_what_a_new_table_lacks_is_said(path: Path) -> None:
    words = ("table", "add", "rou-2=macau.roulette", "--device", "sign-1=alpha_sign@tcp://10.0.0.5:4009")
    assert "rou-2: no device here reports" in run(path, *words, "--why", "x", "--yes")[1]
