"""`feltd init`: the first configuration is one that `feltd check` accepts, from answers or from options."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner, Result
from hypothesis import given, strategies as st

from daemon.broker.mac_keys import load_mac_key, load_mac_keys
from daemon.cli import listings
from daemon.cli.first_configuration import First, FirstTable, configuration
from daemon.cli.main import main
from daemon.config.model import load, parse
from daemon.table_requests import Device

WHEEL = "serial:///dev/serial/by-id/wheel?baud=9600"


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    """The command line sets up logging for its process; here that is the tests'."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def init(path: Path, *words: str, answers: str = "") -> Result:
    return CliRunner().invoke(main, ["init", "-c", str(path), *words], input=answers)


def given_by_options(path: Path) -> Result:
    return init(
        path,
        *("--site", "lisboa", "--edge", "edge-7", "--table", "rou-1=macau.roulette", "--table", "aux-1="),
        *("--option", "rou-1.betting=no_more_bets", "--device", f"rou-1/wheel-1=cammegh_ss2@{WHEEL}"),
    )


def test_init_makes_the_keys_that_the_configuration_names(tmp_path: Path) -> None:
    """An edge's events and the rules' verdicts are signed, and verified by all who use them."""
    path = tmp_path / "new/feltd.toml"
    assert given_by_options(path).exit_code == 0
    config = load(path)
    assert not config.rules.insecure
    assert config.edge.mac_key_file
    assert config.rules.mac_key_file
    assert config.rules.mac_key_folder
    edge, rules = load_mac_key(Path(config.edge.mac_key_file)), load_mac_key(Path(config.rules.mac_key_file))
    assert edge != rules
    assert load_mac_keys(Path(config.rules.mac_key_folder)) == {"edge-7": edge}
    assert load_mac_keys(path.parent / "jackpots-mac") == {"edge-7": edge}
    assert load_mac_keys(path.parent / "jackpots-verdict-mac") == {"lisboa": rules}


def test_options_say_everything(tmp_path: Path) -> None:
    path = tmp_path / "new/feltd.toml"
    done = given_by_options(path)
    assert done.exit_code == 0, done.output
    assert f"feltd acl {path}" in done.stdout
    assert path.stat().st_mode & 0o777 == 0o640
    config = load(path)
    assert (config.site.name, config.edge.name) == ("lisboa", "edge-7")
    rou, aux = config.table
    assert (rou.name, rou.ruleset, rou.options) == ("rou-1", "macau.roulette", {"betting": "no_more_bets"})
    assert [(one.name, one.driver, one.url) for one in rou.device] == [("wheel-1", "cammegh_ss2", WHEEL)]
    assert (aux.name, aux.ruleset, aux.device) == ("aux-1", "", ())
    assert CliRunner().invoke(main, ["check", "-c", str(path)]).exit_code == 0


def test_answers_say_which_table_each_link_belongs_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = [("serial:///dev/a", "adapter"), ("serial:///dev/b", ""), ("usb:?vid=0c2e&pid=0200", "scanner")]
    monkeypatch.setattr(listings, "plugged", lambda: links)
    path = tmp_path / "feltd.toml"
    answers = ["lisboa", "edge-7", "rou-1", "macau.roulette", "cammegh_ss2", "wheel-1", "", "bac-1", "", "", "", "", ""]
    done = init(path, answers="\n".join(answers))
    assert done.exit_code == 0, done.output
    assert [(table.name, table.ruleset) for table in load(path).table] == [("rou-1", "macau.roulette"), ("bac-1", "")]
    assert [(one.name, one.driver, one.url) for table in load(path).table for one in table.device] == [
        ("wheel-1", "cammegh_ss2", "serial:///dev/a"),
        ("device-1", "hid_shoe", "usb:?vid=0c2e&pid=0200"),
    ]


def test_a_file_that_exists_is_never_changed(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text("mine", encoding="utf-8")
    done = given_by_options(path)
    assert done.exit_code == 2
    assert f"{path}: is there already" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--site", "Lisboa!"), "a name is small letters"),
        (("--site", "a", "--edge", "e", "--table", "rou-1=macau.roulete"), "no ruleset 'macau.roulete'"),
        (("--site", "a", "--edge", "e", "--table", "rou-1"), "write TABLE=RULESET"),
        (("--site", "a", "--edge", "e", "--device", "rou-1/w=cammegh_ss2@tcp://h:1"), "no table 'rou-1'"),
        (("--site", "a", "--edge", "e", "--table", "t=", "--device", "t/w=x@tcp://h:1"), "no driver 'x'"),
        (("--site", "a", "--edge", "e", "--table", "t=", "--device", "t/w=cammegh_ss2@h:1"), "a link begins with"),
        (("--site", "a", "--edge", "e", "--table", "t=macau.roulette", "--option", "t.x=1"), "'x'"),
        (("--edge", "e"), "need --site"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    path = tmp_path / "feltd.toml"
    done = init(path, *words)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert not path.exists()


def test_the_passwords_of_the_package_are_used_where_they_are() -> None:
    config = parse(configuration(First("a", "e")))
    assert (config.edge.username, config.edge.password_file) == ("edge", "/etc/feltd/mqtt/edge")
    assert (config.rules.username, config.rules.password_file) == ("rules", "/etc/feltd/mqtt/rules")
    assert (config.mqtt.username, config.mqtt.password_file) == ("console", "/etc/feltd/mqtt/console")
    assert config.maintenance.password_file == "/etc/feltd/mqtt/maintenance"
    assert parse(configuration(First("a", "e", passwords=False))).edge.password_file == ""


@given(st.text().filter(lambda text: "\0" not in text), st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_any_text_survives_the_file(url: str, value: str) -> None:
    table = FirstTable("t-1", "x", {"option": value}, (Device("d-1", "driver", url),))
    [read] = parse(configuration(First("a", "e", (table,)))).table
    assert read.device[0].url == url
    assert str(read.options["option"]) in (value, value.capitalize())


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("250", 250), ("007", "007"), ("true", True), ("1.5", "1.5"), ("²", "²")]
)
def test_numbers_and_truth_values_are_written_as_such(text: str, value: object) -> None:
    [read] = parse(configuration(First("a", "e", (FirstTable("t-1", "", {"option": text}),)))).table
    assert read.options["option"] == value


def test_words_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    done = init(tmp_path / "feltd.toml", "--site", "a", "--edge", "e", "--table", "t=\udcff")
    assert (done.exit_code, "no UTF-8" in done.stderr) == (2, True)


def test_a_wrong_answer_is_asked_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was refused after the last question, and all answers were lost."""
    monkeypatch.setattr("daemon.cli.listings.plugged", list)
    path = tmp_path / "feltd.toml"
    done = CliRunner().invoke(main, ["init", "-c", str(path)], input="Casino Lisboa\nlisboa\nedge 1\nedge-1\n\n")
    assert done.exit_code == 0, done.output
    assert "Error: 'Casino Lisboa': a name is small letters, digits and hyphens" in done.output
    assert done.output.count("Error: ") == 2
    config = load(path)
    assert (config.site.name, config.edge.name) == ("lisboa", "edge-1")


def test_a_link_is_checked_when_it_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.cli.listings.plugged", list)
    path = tmp_path / "feltd.toml"
    links = [
        "seriel:///dev/ttyS0",
        "seriel:?vid=0403",
        "tcp://10.0.0.5",
        "/dev/ttyS0",
        "dice-1",
        "",
        "fdl_shaker",
        "",
        "",
        "",
    ]
    done = init(path, answers="\n".join(["lisboa", "edge-1", *links]))
    assert done.exit_code == 0, done.output
    assert "Error: seriel:///dev/ttyS0: write serial:///dev/ttyS0?baud=9600" in done.output
    assert "did you mean serial:?" in done.output
    assert "Error: tcp://10.0.0.5: write tcp://host:port" in done.output
    [device] = load(path).table[0].device
    assert (device.url, device.driver) == ("serial:///dev/ttyS0", "fdl_shaker")


def test_a_misspelt_game_or_driver_is_asked_again_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.cli.listings.plugged", lambda: [("serial:///dev/ttyS0", "a port")])
    path = tmp_path / "feltd.toml"
    typed = ["lisboa", "edge-1", "rou-1", "macau.roulete", "macau.roulette", "camegh_ss2", "cammegh_ss2", "", ""]
    done = init(path, answers="\n".join([*typed, ""]))
    assert done.exit_code == 0, done.output
    assert "1 link is plugged in." in done.output
    assert "Error: no ruleset 'macau.roulete'; did you mean 'macau.roulette'?" in done.output
    assert "Error: no driver 'camegh_ss2'; did you mean 'cammegh_ss2'?" in done.output
    [table] = load(path).table
    assert (table.ruleset, table.device[0].driver) == ("macau.roulette", "cammegh_ss2")
