"""The configuration: every mistake is named with its line, several at once, and no text does anything else."""

import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import at_length
from hypothesis import given, settings, strategies as st

from daemon.cli.configuration_check import (
    dealer_mistakes,
    device_mistakes,
    file_mistakes,
    ruleset_mistakes,
    summary,
    webhook_mistakes,
)
from daemon.cli.main import main
from daemon.config.lines import line_of
from daemon.config.model import LONGEST, BadConfig, Mqtt, broker_of, load, parse

GOOD = """\
# Two tables.
[site]
name = "lisboa"

[edge]
name = "edge-1"
journal = "/tmp/edge.db"

[mqtt]
host = "10.0.0.5"
port = 8883
version = "3.1.1"
insecure = true

[[table]]
name = "rou-1"
ruleset = "macau.roulette"

[table.options]
betting = "no_more_bets"

[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "serial:///dev/serial/by-id/usb-wheel?baud=9600"

[table.device.options]
silence = 4.0

[[table.device]]
name = "console-1"
driver = "fdl_console"
url = "tcp://192.168.7.20:4001"

[[table]]
name = "cus-1"
ruleset = "macau.cussec"

[[table.device]]
name = "shaker-1"
driver = "fdl_shaker"
url = "serial:?vid=0403&pid=6001&serial=A50285BI"
"""


def changed(old: str, new: str, count: int = 1) -> str:
    """GOOD with one thing wrong."""
    assert old in GOOD
    return GOOD.replace(old, new, count)


def line(text: str, words: str, nth: int = 1) -> int:
    """The number of the nth line with `words`."""
    return [number for number, one in enumerate(text.split("\n"), 1) if words in one][nth - 1]


def mistakes(text: str) -> list[tuple[int, str]]:
    with pytest.raises(BadConfig) as caught:
        parse(text, "feltd.toml")
    told = str(caught.value).split("\n")
    assert [f"feltd.toml:{one.line}: {one.text}" for one in caught.value.mistakes] == told
    return [(one.line, one.text) for one in caught.value.mistakes]


# ---- a good file


def test_a_good_file_says_all() -> None:
    config = parse(GOOD)
    assert (config.site.name, config.edge.name, config.edge.journal) == ("lisboa", "edge-1", "/tmp/edge.db")
    assert config.mqtt == Mqtt(host="10.0.0.5", port=8883, version="3.1.1", insecure=True)
    assert config.rules.journal == "/var/lib/feltd/rules/journal.db"
    assert [table.name for table in config.table] == ["rou-1", "cus-1"]
    assert [device.name for device in config.table[0].device] == ["wheel-1", "console-1"]
    assert config.table[0].options == {"betting": "no_more_bets"}
    assert config.table[0].device[0].options == {"silence": 4.0}
    assert [device.driver for device in config.table[1].device] == ["fdl_shaker"]


def test_the_digest_is_of_the_text() -> None:
    assert parse(GOOD).digest == parse(GOOD).digest
    assert parse(GOOD).digest != parse(GOOD + "\n").digest
    assert len(parse(GOOD).digest) == 16


def test_the_least_file_is_safe() -> None:
    config = parse('[site]\nname = "a"\n[edge]\nname = "b"\n')
    assert (config.mqtt.host, config.mqtt.port, config.mqtt.version) == ("127.0.0.1", 1883, "5")
    assert config.table == ()


@pytest.mark.parametrize(
    ("folder", "expected"), [(None, "/etc/credstore"), ("/run/credentials/x", "/run/credentials/x")]
)
def test_a_credential_is_read_where_systemd_puts_it(
    monkeypatch: pytest.MonkeyPatch, folder: str | None, expected: str
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    if folder:
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", folder)
    config = parse(
        GOOD.replace("[edge]", '[edge]\npassword_file = "credential:mqtt-edge"\nmac_key_file = "credential:../x"')
    )
    assert config.edge.password_file == f"{expected}/mqtt-edge"
    assert config.edge.mac_key_file == "credential:../x", "a name leads to no other folder"


def test_each_part_may_come_to_the_broker_as_a_user_of_its_own() -> None:
    text = changed("port = 8883", 'port = 8883\nusername = "console"\npassword_file = "/c"')
    text = text.replace("[edge]", '[edge]\nusername = "edge"\npassword_file = "/e"')
    config = parse(text)
    mine, common = broker_of(config, config.edge), broker_of(config, config.rules)
    assert (mine.username, mine.password_file, mine.host, mine.port) == ("edge", "/e", "10.0.0.5", 8883)
    assert common == config.mqtt
    assert (common.username, common.password_file) == ("console", "/c")
    named = parse(text.replace('username = "edge"\n', ""))
    assert broker_of(named, named.edge).username == "edge-1"


# ---- each mistake, at its line

WRONG: dict[str, tuple[str, str, str, int]] = {
    "syntax": (changed("port = 8883", "port = = 8883"), "port = = 8883", "not TOML: Invalid value", 1),
    "open string": (changed('host = "10.0.0.5"', 'host = "10.0.0.5'), 'host = "10', "not TOML: Illegal character", 1),
    "key twice": (changed("port = 8883", "port = 8883\nport = 1883"), "port = 1883", "not TOML: Cannot overwrite", 1),
    "table header twice": (changed("[mqtt]", "[mqtt]\n[site]"), "[site]", "not TOML: Cannot declare", 2),
    "unknown key, near": (changed("journal =", "jornal ="), "jornal", "'edge.jornal'; did you mean 'journal'?", 1),
    "unknown key, far": (
        changed("port = 8883", "zzz = 1"),
        "zzz",
        "known here: host, port, others, version, usern",
        1,
    ),
    "unknown section": (changed("[mqtt]", "[mqqt]"), "[mqqt]", "unknown key 'mqqt'; did you mean 'mqtt'?", 1),
    "digest is ours": (changed("[site]", 'digest = "x"\n[site]'), "digest", "unknown key 'digest'; ", 1),
    "missing": (changed('name = "edge-1"\n', ""), "[edge]", "'edge.name' is missing", 1),
    "missing in a device": (changed('driver = "fdl_console"\n', ""), "[[table.device]]", "'table.device.driver' is", 2),
    "missing in a later table": (changed('name = "cus-1"\n', ""), "[[table]]", "'table.name' is missing", 2),
    "type": (changed("port = 8883", 'port = "8883"'), "port", "'mqtt.port': must be a whole number, and is a text", 1),
    "range": (changed("port = 8883", "port = 70000"), "port", "'mqtt.port': must be at most 65535", 1),
    "choice": (changed('"3.1.1"', '"4"'), "version", "'mqtt.version': write one of '5', '3.1.1'", 1),
    "id": (changed('"rou-1"', '"Roulette 1"'), "Roulette", "'table.name': a name is small letters", 1),
    "empty path": (changed('"/tmp/edge.db"', '""'), "journal", "'edge.journal': must not be empty", 1),
    "options no table": (
        changed("[table.options]\nbetting =", "options ="),
        "options =",
        "must be a table of names and values",
        1,
    ),
    "single table": (changed("[[table]]", "[table]").split("[[table]]")[0], "[table]", "must be written [[table]]", 1),
    "single device": (
        changed("[[table.device]]", "[table.device]").split('[[table.device]]\nname = "console-1"')[0],
        "[table.device]",
        "must be written [[table.device]]",
        1,
    ),
    "password of nobody": (
        changed("[edge]", '[console]\npassword_file = "/x"\n[edge]'),
        "password_file",
        "console.password_file needs a username, too",
        1,
    ),
    "a list of no tables": ("table = [1]\n" + changed("", "").split("[[table]]")[0], "table = ", "must be a table", 1),
    "no table at all": ("site = 3\n" + changed('[site]\nname = "lisboa"\n', ""), "site =", "site must be a table", 1),
    "table twice": (changed('name = "cus-1"', 'name = "rou-1"'), '"rou-1"', "table 'rou-1' is there twice", 2),
    "chips twice": (
        changed('name = "cus-1"', 'name = "cus-1"\nchips = [500, 500]'),
        "chips =",
        "chips: write each amount once, the smallest first",
        1,
    ),
    "chips from large to small": (
        changed('name = "cus-1"', 'name = "cus-1"\nchips = [500, 100]'),
        "chips =",
        "chips: write each amount once, the smallest first",
        1,
    ),
    "a chip of nothing": (
        changed('name = "cus-1"', 'name = "cus-1"\nchips = [0, 100]'),
        "chips =",
        "'table.chips': [0]: must be at least 1",
        1,
    ),
    "device twice": (changed('"console-1"', '"wheel-1"'), '"wheel-1"', "device 'wheel-1' is there twice", 2),
    "reserved name": (changed('"console-1"', '"round"'), '"round"', "a reserved name", 1),
    "link twice": (
        changed('"serial:?vid=0403&pid=6001&serial=A50285BI"', '"tcp://192.168.7.20:4001"'),
        "192.168.7.20",
        "tcp://192.168.7.20:4001 already belongs to rou-1/console-1",
        2,
    ),
    "no other broker": (
        changed("port = 8883", 'port = 8883\nothers = ["10.0.0.6:99999"]'),
        "others",
        "mqtt.others: '10.0.0.6:99999' is no address of a broker; write HOST or HOST:PORT",
        1,
    ),
    "no broker": (changed('"10.0.0.5"', '" "'), 'host = " "', "mqtt.host is empty: write the broker's address", 1),
    "a journal for two": (
        changed("[mqtt]", '[rules]\njournal = "/tmp/x/../edge.db"\n\n[mqtt]'),
        "x/../edge.db",
        "rules.journal: /tmp/x/../edge.db already belongs to edge.journal; give it a file of its own",
        1,
    ),
    "a journal for three": (
        changed("[mqtt]", '[console]\njournal = "/tmp/edge.db"\n\n[mqtt]'),
        "/tmp/edge.db",
        "console.journal: /tmp/edge.db already belongs to edge.journal",
        2,
    ),
    "a store that is a journal": (
        changed("[mqtt]", '[console]\nstore = "/tmp/edge.db"\n\n[mqtt]'),
        "/tmp/edge.db",
        "console.store: /tmp/edge.db already belongs to edge.journal",
        2,
    ),
    "no zone": (
        changed('name = "lisboa"', 'name = "lisboa"\ntimezone = "Macau/Taipa"'),
        "Taipa",
        "site.timezone: 'Macau/Taipa' is no zone of this computer; write one like Asia/Macau",
        1,
    ),
    "no address": (
        changed("[mqtt]", '[console]\nlisten = "nonsense!"\n\n[mqtt]'),
        "nonsense!",
        "console.listen: 'nonsense!' is no address and no name of a computer; write 127.0.0.1",
        1,
    ),
    "all addresses unsaid": (changed("[mqtt]", '[console]\nlisten = ""\n\n[mqtt]'), "listen", "'' is no address", 1),
    "a proxy by name": (
        changed("[mqtt]", '[console]\nport = 8081\nproxies = ["10.0.0.0/8", "proxy.lisboa"]\n\n[mqtt]'),
        "proxies",
        "console.proxies: 'proxy.lisboa' is no address of a computer or network, for example 127.0.0.1",
        1,
    ),
    "a proxy between networks": (
        changed("[mqtt]", '[console]\nproxies = ["10.0.0.1/8"]\n\n[mqtt]'),
        "proxies",
        "console.proxies: '10.0.0.1/8' is no address of a computer or network",
        1,
    ),
    "one proxy": (
        changed("[mqtt]", '[console]\nproxies = "127.0.0.1"\n\n[mqtt]'),
        "proxies",
        "'console.proxies': must be a list in [ ], and is a text",
        1,
    ),
    "one name for two": (
        changed("[mqtt]", '[rules]\nname = "edge-1"\n\n[mqtt]'),
        'name = "edge-1"',
        "edge.name 'edge-1' is that of the rules, too; give one of them another",
        1,
    ),
    "a remote broker without TLS": (
        changed("insecure = true\n", ""),
        'host = "10.0.0.5"',
        "mqtt.host: 10.0.0.5 is another computer: without TLS passwords and cards pass in clear; name the ca_file, or",
        1,
    ),
    "pages for everybody without TLS": (
        changed("[mqtt]", '[console]\nlisten = "0.0.0.0"\n\n[mqtt]'),
        '"0.0.0.0"',
        "console.listen: 0.0.0.0 is reached from other computers: without TLS passwords pass in clear; name",
        1,
    ),
    "pages for everybody behind a proxy": (
        changed("[mqtt]", '[console]\nurl = "https://pit"\nlisten = "::"\n\n[mqtt]'),
        '"::"',
        "or listen at 127.0.0.1 behind a proxy with TLS",
        1,
    ),
    "a zero in a path": (
        changed('"/tmp/edge.db"', '"/tmp/ed\\u0000ge.db"'),
        "u0000",
        r"'edge.journal': a text cannot hold the character \u0000",
        1,
    ),
    "a zero in a list": (
        changed("[mqtt]", '[console]\nproxies = ["10.0.0.1", "\\u0000"]\n\n[mqtt]'),
        "proxies",
        r"'console.proxies': a text cannot hold the character \u0000",
        1,
    ),
    "a zero in a link": (
        changed("usb-wheel", "usb\\u0000wheel"),
        "u0000",
        r"'table.device.url': a text cannot hold the character \u0000",
        1,
    ),
    "a relative journal": (
        changed('"/tmp/edge.db"', '"edge.db"'),
        '"edge.db"',
        "edge.journal: edge.db depends on where a process was started; write the whole path, from /",
        1,
    ),
    "a relative store": (
        changed("[mqtt]", '[console]\nstore = "./console.db"\n\n[mqtt]'),
        "console.db",
        "console.store: ./console.db depends on where",
        1,
    ),
    "a folder by its name": (
        changed('"/tmp/edge.db"', '"/tmp/"'),
        '"/tmp/"',
        "edge.journal: /tmp/ is a folder; name a file in it",
        1,
    ),
    "a byte order mark": ("\ufeff" + changed("a", "a"), "Two tables", "begins with a byte order mark; save it as", 1),
    "a number too long": (
        changed("port = 8883", "port = " + "9" * 5000),
        "port = 999",
        "not TOML: Exceeds the limit (4300 digits) for integer string conversion",
        1,
    ),
    "a number too long in a list of many lines": (
        changed("port = 8883", "port = [\n  1,\n  " + "9" * 5000 + ",\n  2\n]"),
        "  999",
        "not TOML: Exceeds the limit",
        1,
    ),
    "a nesting too deep": (
        changed("port = 8883", "port = " + "[" * 5000 + "]" * 5000),
        "port = [[[",
        "not TOML: maximum recursion depth exceeded",
        1,
    ),
    "a key of many parts": (
        changed("port = 8883", ".".join("a" * 17) + " = 8883"),
        "a.a.a",
        "a key of more than 16 parts: is a text without quotes?",
        1,
    ),
    "a header of many parts": (changed("[mqtt]", "[" + " . ".join(["'a'"] * 17) + "]"), "'a' .", "a key of more", 1),
    "a default name for two": (changed('"edge-1"', '"rules"'), '"rules"', "edge.name 'rules' is that of the rules", 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named_with_its_line(name: str) -> None:
    text, words, said, nth = WRONG[name]
    found = mistakes(text)
    assert len(found) == 1, found
    number, told = found[0]
    assert said in told
    assert number == line(text, words, nth)


@pytest.mark.parametrize(("text", "last"), [("a = ", 1), ("[site]\nname = ", 2), ('[site]\nname = """x\n\n', 2)])
def test_open_brackets_are_named_at_the_end(text: str, last: int) -> None:
    assert [number for number, _ in mistakes(text)] == [last]


def test_several_at_once_in_the_order_of_the_file() -> None:
    text = changed("journal =", "jornal =").replace("port = 8883", 'port = "x"').replace('name = "cus-1"', "nam = 3")
    text = text.replace('driver = "fdl_shaker"', "driver = 7")
    assert mistakes(text) == [
        (line(text, "jornal"), "unknown key 'edge.jornal'; did you mean 'journal'?"),
        (line(text, "port ="), "'mqtt.port': must be a whole number, and is a text"),
        (line(text, "[[table]]", 2), "'table.name' is missing"),
        (line(text, "nam ="), "unknown key 'table.nam'; did you mean 'name'?"),
        (
            line(text, "driver = 7"),
            "'table.device.driver': must be a text in quotes, like \"this\", and is a whole number",
        ),
    ]


def test_a_list_of_words_is_read_and_refused_as_any_value() -> None:
    text = changed("[mqtt]", '[[console.webhook]]\nurl = "http://desk"\nseverities = ["error"]\n\n[mqtt]')
    assert parse(text).console.webhook[0].severities == ("error",)
    text = text.replace('["error"]', '["eror"]')
    assert [number for number, _ in mistakes(text)] == [line(text, "severities")]


def test_an_empty_file_misses_its_sections() -> None:
    assert mistakes("") == [(1, "'site' is missing"), (1, "'edge' is missing")]


# ---- lines where they are hard to find


@pytest.mark.parametrize(
    "before",
    [
        "",
        "nines = [\n  [1, 2],\n  [3, 4]\n]\n",  # a line of a value that looks like a header
        "nines = [\n  [1]\n]\n",
        'text = """\n[edge]\nport = 3\n[[table]]\n"""\n',  # lines of a text that look like headers and keys
        "text = '''\n[[table.device]]\n'''\n",
        "# \u2028\x85 a comment with what other programs take for line ends\n",
        '"a.b" = { c = 1, "d]" = [1, 2] }\n',
        'deep.dotted."ke=y" = 1\n',
    ],
)
def test_values_of_many_lines_do_not_move_the_others(before: str) -> None:
    text = changed('betting = "no_more_bets"\n', before)
    assert parse(text).table
    text = text.replace('driver = "fdl_shaker"', "driver = 7")
    assert [number for number, _ in mistakes(text)] == [line(text, "driver = 7")]


@pytest.mark.parametrize("last", ["  [1, 2]", "  [1]", '  ["a"]', "  [[1]]"])
def test_the_last_line_of_a_list_is_no_header(tmp_path: Path, last: str) -> None:
    text = changed("betting =", f"nines = [\n{last}\n]\nbetting =")
    path = tmp_path / "feltd.toml"
    path.write_text(text, encoding="utf-8")
    assert line_of(path, ("table", 0, "options", "betting")) == line(text, "betting")
    assert line_of(path, ("table", 0, "options", "nines", 0)) == line(text, "nines")


def test_windows_line_ends() -> None:
    text = changed("port = 8883", 'port = "x"').replace("\n", "\r\n")
    assert [number for number, _ in mistakes(text)] == [line(text, "port =")]


def test_headers_with_blanks_quotes_and_comments() -> None:
    text = changed("[mqtt]", '  [ "mqtt" ]  # the broker').replace("[[table.device]]", '[[ table . "device" ]] # x')
    text = text.replace("port = 8883", "port = 0").replace('driver = "fdl_console"', "driver = 1")
    assert [number for number, _ in mistakes(text)] == [line(text, "port ="), line(text, "driver = 1")]


def test_inline_tables_and_dotted_keys() -> None:
    text = 'site.nam = "a"\nedge = { name = "B B" }\ntable = [\n  { name = "t" },\n  { nam = "u" },\n]\n'
    found = mistakes(text)
    assert [number for number, _ in found] == [1, 1, 2, 3, 3]
    assert {told for number, told in found if number == 1} == {
        "unknown key 'site.nam'; did you mean 'name'?",
        "'site.name' is missing",
    }


# ---- files


def test_a_key_of_thousands_of_parts_takes_no_memory() -> None:
    text = GOOD + ".".join("a" * 20_000) + " = 1\n"
    tracemalloc.start()
    try:
        assert [number for number, _ in mistakes(text)] == [GOOD.count("\n") + 1]
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_text_with_many_dots_is_no_key() -> None:
    text = changed(
        '"serial:///dev/serial/by-id/usb-wheel?baud=9600"', '"serial:///dev/' + "a." * 40 + 'b"  # ' + "c." * 9
    )
    assert parse(text).table[0].device[0].url.endswith("a.b")


def test_a_file_that_is_too_long_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(GOOD + "#" * LONGEST, encoding="utf-8")
    with pytest.raises(BadConfig) as caught:
        load(path)
    assert str(caught.value) == f"{path}: has more than {LONGEST} bytes: a configuration has some hundred lines"
    with pytest.raises(BadConfig, match="has more than"):
        load(Path("/dev/zero"))


@pytest.mark.parametrize("part", ["edge.journal", "rules.journal", "console.journal", "console.store"])
def test_a_folder_as_a_journal_is_a_mistake(tmp_path: Path, part: str) -> None:
    section, _, key = part.partition(".")
    name = "" if section == "rules" else 'name = "e"\n' if section == "edge" else ""
    edge = "" if section == "edge" else '[edge]\nname = "e"\n'
    path = tmp_path / "feltd.toml"
    path.write_text(f'[site]\nname = "s"\n{edge}[{section}]\n{name}{key} = "{tmp_path}"\n', encoding="utf-8")
    said = f"{path}:{line(path.read_text(), key)}: {part}: {tmp_path} is a folder; name a file in it"
    assert file_mistakes(load(path), path) == [said]
    checked = CliRunner().invoke(main, ["check", "-c", str(path)])
    assert checked.exit_code == 2
    assert said in checked.output


@pytest.mark.parametrize(
    "console",
    [
        'listen = "127.0.0.1"',
        'listen = "::1"',
        'listen = "localhost"\nurl = "https://pit"\nproxies = ["127.0.0.1"]',
        'listen = "0.0.0.0"\ninsecure = true',
        'listen = "0.0.0.0"\ncertificate = "/c"\nkey = "/k"',
    ],
)
def test_pages_may_be_on_this_computer_or_by_tls_or_said_to_be_insecure(console: str) -> None:
    assert parse(changed("[mqtt]", f"[console]\n{console}\n\n[mqtt]"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadConfig) as caught:
        load(tmp_path / "feltd.toml")
    assert str(caught.value) == f"{tmp_path}/feltd.toml: cannot be read: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_bytes_that_are_no_text_have_a_line(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_bytes(b'[site]\nname = "\xe9"\n')
    with pytest.raises(BadConfig) as caught:
        load(path)
    assert str(caught.value) == f"{path}:2: is not UTF-8 text: invalid continuation byte"


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, where tests have them."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


def test_a_file_that_may_not_be_read() -> None:
    with tempfile.NamedTemporaryFile() as file:
        os.chmod(file.name, 0)  # noqa: PTH101
        with as_nobody(), pytest.raises(BadConfig, match="cannot be read: Permission denied"):
            load(Path(file.name))


# ---- any text

PIECES = st.sampled_from(
    [
        *GOOD.split("\n"),
        "[table]",
        "table = 1",
        "[[site]]",
        "[table.device.options]",
        "x = [[[",
        "name = 1979-05-27T07:32:00Z",
        "port = 1e400",
        "port = nan",
        f"port = {'9' * 5000}",
        "x = " + "[" * 1000 + "]" * 1000,
        "name = '''",
        "name.name = 1",
        '"" = 1',
        "device = [{}, 1]",
        "options = {a.b = 1}",
    ]
)


def slips(text: str) -> list[tuple[int, str]]:
    """The mistakes of any text; none where it is good."""
    try:
        parse(text)
    except BadConfig as error:
        return [(one.line, one.text) for one in error.mistakes] or [(0, "")]
    return []


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=25).map("\n".join)))
@settings(max_examples=at_length(50, 1_000))
def test_any_text_is_a_configuration_or_a_named_mistake(text: str) -> None:
    found = slips(text)
    assert all(1 <= number <= text.count("\n") + 1 for number, _ in found)
    assert all(told for _, told in found)


@given(st.data())
@settings(max_examples=at_length(25, 500))
def test_a_good_file_with_lines_lost_or_doubled(data: st.DataObject) -> None:
    """What an editor's slip makes of it is still good, or is named."""
    lines = GOOD.split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at : at + 1] = data.draw(st.sampled_from([[], [lines[at]] * 2, [lines[at][1:]], [lines[at][:-1]]]))
    assert all(1 <= number <= len(lines) for number, _ in slips("\n".join(lines)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tcp://localhost:17001", "tcp://127.0.0.1:17001"),
        ("tcp://Serial-Server:1", "tcp://serial-server:1"),
        ("tcp://[::1]:1", "tcp://[0:0:0:0:0:0:0:1]:1"),
        ("serial:///dev/ttyS1?baud=9600", "serial:///dev/ttyS1?baud=19200"),
        ("serial:///dev/ttyS1", "serial:///dev//ttyS1?parity=even"),
        ("serial:///dev/ttyS1?baud=9600", "sas:///dev/ttyS1"),
        ("serial:?vid=0403&pid=6001&serial=A5", "serial:?pid=6001&vid=0403&serial=A5&baud=9600"),
        ("usb:?vid=05e0&pid=1200", "usb:?pid=1200&vid=05E0"),
        ("mqtt://localhost/?hear=a/b&say=c", "mqtt://127.0.0.1:1883/?say=d&hear=a/b&username=u"),
        ("mqtt://Broker/?hear=a&hear=b&say=c", "mqtt://broker/?hear=b&hear=a&say=c"),
    ],
)
def test_one_port_is_one_port_however_it_is_spelled(one: str, other: str) -> None:
    text = changed('"tcp://192.168.7.20:4001"', f'"{one}"').replace('"serial:?vid=0403&pid=6001&serial=A50285BI"', "?")
    text = text.replace("?\n", f'"{other}"\n')
    with pytest.raises(BadConfig) as found:
        parse(text, "x.toml")
    place = line(text, f'"{other}"')
    assert str(found.value) == f"x.toml:{place}: {other} already belongs to rou-1/console-1, as {one}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tcp://127.0.0.1:17001", "tcp://127.0.0.1:17002"),
        ("tcp://127.0.0.1:17001", "tcp://127.0.0.2:17001"),
        ("serial:?vid=0403&pid=6001&serial=A5", "serial:?vid=0403&pid=6001&serial=A6"),
        ("usb:?vid=05e0&pid=1200&serial=A", "usb:?vid=05e0&pid=1200&serial=a"),
        ("mqtt://10.0.0.9/?hear=a&say=b", "mqtt://10.0.0.9/?hear=c&say=d"),
        ("tcp://[::1", "tcp://[::2"),
        ("x:1", "x:2"),
    ],
)
def test_two_ports_are_two(one: str, other: str) -> None:
    text = changed('"tcp://192.168.7.20:4001"', f'"{one}"').replace('"serial:?vid=0403&pid=6001&serial=A50285BI"', "?")
    assert parse(text.replace("?\n", f'"{other}"\n'))


# ---- drivers, links, games


def check(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "feltd.toml"
    path.write_text(text, encoding="utf-8")
    config = load(path)
    mistakes = device_mistakes(config, path) + ruleset_mistakes(config, path) + dealer_mistakes(config, path)
    mistakes += webhook_mistakes(config, path)
    return [one.removeprefix(f"{path}:") for one in mistakes]


def test_a_bare_path_is_a_serial_port_whose_name_may_change(tmp_path: Path) -> None:
    text = GOOD.replace("serial:///dev/serial/by-id/usb-wheel?baud=9600", "/dev/ttyUSB0")
    assert check(tmp_path, text) == []
    device = parse(text).table[0].device[0]
    assert device.url == "serial:///dev/ttyUSB0"
    assert "note: rou-1/wheel-1: /dev/ttyUSB0 may be another device after" in summary(parse(text), Path("x.toml"))
    assert "may be another device" not in summary(parse(GOOD), Path("x.toml"))


def test_an_unusual_speed_is_noted_and_not_refused(tmp_path: Path) -> None:
    text = GOOD.replace("baud=9600", "baud=96000")
    assert check(tmp_path, text) == []
    assert "note: rou-1/wheel-1: 96000 baud is unusual" in summary(parse(text), Path("x.toml"))


BROKER = '[site]\nname = "s"\n[edge]\nname = "e"\n[mqtt]\nhost = "{}"\n'


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("mqtt://127.0.0.1", "127.0.0.1", 1883),
        ("mqtt://localhost", "localhost", 1883),
        ("mqtt://localhost/", "localhost", 1883),
        ("mqtt://[::1]:1884", "::1", 1884),
        ("localhost:1884", "localhost", 1884),
        ("localhost", "localhost", 1883),
        ("::1", "::1", 1883),
    ],
)
def test_an_address_of_this_computer_is_understood(address: str, host: str, port: int) -> None:
    broker = parse(BROKER.format(address)).mqtt
    assert (broker.host, broker.port) == (host, port)


def test_an_address_with_tls_has_its_own_port() -> None:
    broker = parse(BROKER.format("mqtts://broker.example") + 'ca_file = "/etc/feltd/ca.crt"\n').mqtt
    assert (broker.host, broker.port) == ("broker.example", 8883)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mqqt://127.0.0.1", "mqqt:// is no address of a broker; did you mean 'mqtt'?"),
        ("http://127.0.0.1", "http:// is no address of a broker; known: mqtt, mqtts"),
        ("mqtts://127.0.0.1", "mqtts:// is TLS: name the ca_file, too"),
        ("mqtt://me:pw@127.0.0.1", 'write host = "mqtt://127.0.0.1" or "mqtt://HOST:PORT", and nothing else'),
        ("mqtt://127.0.0.1/topic", 'write host = "mqtt://127.0.0.1" or "mqtt://HOST:PORT", and nothing else'),
        ("mqtt://127.0.0.1:99999", "99999 is no port; a port is 1 to 65535"),
    ],
)
def test_another_address_is_answered_with_what_to_write(address: str, said: str) -> None:
    assert mistakes(BROKER.format(address)) == [(6, f"mqtt.host: {said}")]


def test_two_ports_of_the_broker_are_refused() -> None:
    text = BROKER.format("mqtt://127.0.0.1:1884") + "port = 1885\n"
    assert mistakes(text) == [(6, "mqtt.host has port 1884 and mqtt.port is 1885; leave one of them out")]


def test_an_address_of_another_computer_still_needs_tls() -> None:
    [(line, said)] = mistakes(BROKER.format("mqtt://broker.example"))
    assert line == 6
    assert said.startswith("mqtt.host: broker.example is another computer")


def test_the_good_file_passes_all_checks(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD) == []
    said = summary(parse(GOOD), Path("x.toml"))
    assert "x.toml: good. Site lisboa, edge edge-1, broker 10.0.0.5:8883" in said
    assert "rou-1: macau.roulette" in said
    assert "wheel-1: cammegh_ss2 at serial:///dev/serial/by-id/usb-wheel?baud=9600" in said


SPEAKS = """\
[[table]]
name = "cus-1"
[[table.device]]
name = "camera"
driver = "idp_dice"
url = "mqtt://HERE/?hear=a&say=bMORE"
"""


MUTUAL = 'host = "10.0.0.5"\nport = PORT\nca_file = "{there}"\ncertificate = "{there}"\nkey = "{there}"'


@pytest.mark.parametrize(
    ("mqtt", "notes"),
    [
        (
            'host = "10.0.0.5"\ninsecure = true',
            ["[mqtt]: the broker is on another computer: passwords and messages pass in clear"],
        ),
        (
            'host = "pit.lisboa.example"\ninsecure = true',
            ["[mqtt]: the broker is on another computer: passwords and messages"],
        ),
        ('host = "10.0.0.5"\nport = 8883\nca_file = "{there}"', ["[mqtt]: passwords alone authenticate users"]),
        (MUTUAL.replace("PORT", "8883"), []),
        (MUTUAL.replace("PORT", "1883"), ["[mqtt]: TLS at port 1883"]),
        ('port = 8883\nca_file = "{there}.crt"', ["mqtt.ca_file: {there}.crt is not there"]),
        ('host = "localhost"', []),
        ('host = "::1"', []),
        ('username = "u"\npassword_file = "{there}"', []),
        ('username = "u"\npassword_file = "{there}/x"', ["mqtt.password_file: {there}/x is not there"]),
        ("[journal]\nkey = '/nowhere/key.pem'", ["journal.key: /nowhere/key.pem is not there"]),
        ("[replica]\nusername = 'r'\npassword_file = '/n'", ["replica.password_file: /n is not there"]),
        ("[[console.webhook]]\nurl='https://x/'\nsecret_file='/n'", ["console.webhook.0.secret_file: /n is not there"]),
        (
            SPEAKS.replace("HERE", "10.0.0.2").replace("MORE", "&username=u&password_file=/n"),
            ["cus-1/camera: the broker is on another computer", "cus-1/camera, password_file: /n is not there"],
        ),
        (SPEAKS.replace("HERE", "127.0.0.1").replace("MORE", ""), []),
        (
            SPEAKS.replace("HERE", "10.0.0.2:8883").replace("MORE", "&ca_file={there}"),
            ["cus-1/camera: passwords alone authenticate users"],
        ),
    ],
)
def test_files_missing_on_this_computer_are_noted(tmp_path: Path, mqtt: str, notes: list[str]) -> None:
    there = tmp_path / "there"
    there.touch()
    text = f'[site]\nname = "s"\n[edge]\nname = "e"\n[mqtt]\n{mqtt}\n'.replace("{there}", str(there))
    said = [line for line in summary(parse(text), Path("x.toml")).splitlines() if line.startswith("  note: ")]
    assert len(said) == len(notes)
    for line, note in zip(said, notes, strict=True):
        assert line.startswith("  note: " + note.replace("{there}", str(there)))


@pytest.mark.parametrize(
    ("old", "new", "words", "said"),
    [
        ('"cammegh_ss2"', '"camegh_ss2"', "camegh", "no driver 'camegh_ss2'; did you mean 'cammegh_ss2'?"),
        ('"fdl_console"', '"zzz"', '"zzz"', "no driver 'zzz'; known: alpha_sign, bee_tek_shoe"),
        (
            "silence = 4.0",
            "silance = 4.0",
            "silance",
            "options of cammegh_ss2: there is no 'silance'",
        ),
        (
            "silence = 4.0",
            'silence = "x"',
            "silence",
            "options of cammegh_ss2: silence: must be a number, and is a text",
        ),
        ("silence = 4.0", "silence = 0", "silence", "options of cammegh_ss2: silence: must be at least 1.0"),
        ('"tcp://192.168.7.20:4001"', '"tcp://192.168.7.20"', "tcp:", "write tcp://host:port"),
        ('"tcp://192.168.7.20:4001"', '"tcp://[::1"', "tcp:", "tcp://[::1: "),
        ('"tcp://192.168.7.20:4001"', '"udp://x:1"', "udp:", "a link begins with serial:, tcp:, socket:, unix:, usb:"),
        ("baud=9600", "baud=fast", "baud", "baud is a number, for example 9600"),
        ('"macau.cussec"', '"macau.cusec"', "cusec", "no ruleset 'macau.cusec'"),
        ('"no_more_bets"', '"never"', "betting", "'never' cannot be chosen"),
        ("betting =", "beting =", "beting", "macau.roulette has no option 'beting'; it has: edition, betting"),
        ("betting =", 'limits = ["plein=1-5"]\nbetting =', "limits", "limits: no bet 'plein'; it has "),
        ("betting =", 'edition = "2003"\nbetting =', "betting", "no_more_bets"),
    ],
)
def test_a_wrong_driver_link_or_game_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, words: str, said: str
) -> None:
    text = changed(old, new)
    found = check(tmp_path, text)
    assert len(found) == 1, found
    number, _, told = found[0].partition(": ")
    assert said in told
    if "2003" not in new:  # a combination stands in two lines; the section is named
        assert int(number) == line(text, words)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://x", "its url must begin with http:// or https://"),
        ("https://u:p@x/", "no user or password belongs in its url"),
        ("http://[", "its url is invalid"),
        ("http://x/ y", "must be written in ASCII"),
    ],
)
def test_a_webhook_that_cannot_be_is_named_with_its_line(tmp_path: Path, url: str, said: str) -> None:
    good = "[[console.webhook]]\nurl = 'https://desk/'\nsecret_file = '/nowhere'\n"
    text = changed("[mqtt]", f"{good}[[console.webhook]]\nurl = '{url}'\n\n[mqtt]")
    [found] = check(tmp_path, text)
    assert found.startswith(f"{line(text, url)}: console.webhook 1: ")
    assert said in found


def test_a_percent_in_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a%20b.toml"
    path.write_text(changed('"cammegh_ss2"', '"camegh"').replace("tcp:", "udp:").replace("macau.c", "macau.x"))
    config = load(path)
    assert [one.partition(": ")[0].rpartition(":")[0] for one in device_mistakes(config, path)] == [str(path)] * 2


def test_all_of_them_at_once(tmp_path: Path) -> None:
    text = changed('"fdl_console"', '"zzz"').replace('"tcp://192.168.7.20:4001"', '"x"').replace("macau.cussec", "y")
    found = check(tmp_path, text)
    assert [int(one.partition(":")[0]) for one in found] == [
        line(text, '"zzz"'),
        line(text, '"x"'),
        line(text, 'ruleset = "y"'),
    ]


# ---- dealer pages

DEALER = """
[site]
name = "lisboa"
[edge]
name = "edge-1"
[console]
port = 8080
[console.dealer]
bac-1 = "/run/felt/bac-1.sock"
rou-1 = "/run/felt/rou-1.sock"
[[table]]
name = "bac-1"
[[table.device]]
name = "page-1"
driver = "fdl_console"
url = "unix:///run/felt/bac-1.sock"
[[table]]
name = "rou-1"
[[table.device]]
name = "page-1"
driver = "fdl_console"
url = "unix:///run/felt/rou-1.sock?user=felt"
"""


def test_good_dealer_pages_pass_and_are_told(tmp_path: Path) -> None:
    assert check(tmp_path, DEALER) == []
    assert "    dealer's page at /run/felt/rou-1.sock" in summary(parse(DEALER), Path("x.toml"))
    assert check(tmp_path, DEALER.replace("unix:///run/felt/bac-1", "unix:///run/./felt/bac-1")) == []
    # A console whose edge has a file of its own.
    assert check(tmp_path, DEALER.partition("[[table.device]]")[0] + '[[table]]\nname = "rou-1"') == []


@pytest.mark.parametrize(
    ("old", "new", "words", "said"),
    [
        ("rou-1 =", "rou-l =", "rou-l", "no table 'rou-l'; did you mean 'rou-1'?"),
        ("rou-1 =", "zzz =", "zzz", "no table 'zzz'; known: bac-1, rou-1"),
        (
            '= "/run/felt/rou-1.sock"',
            '= "127.0.0.1:7702"',
            "rou-1 =",
            "write the path of a socket, for example /run/feltd",
        ),
        ('= "/run/felt/rou-1.sock"', f'= "/{"x" * 107}"', "rou-1 =", "the kernel takes at most 107 bytes"),
        (
            '= "/run/felt/rou-1.sock"',
            '= "/run/felt/bac-1.sock"',
            "rou-1 =",
            "already belongs to the dealer's page of bac-1",
        ),
        (
            '= "/run/felt/rou-1.sock"',
            '= "/run/felt/x.sock"',
            "rou-1 =",
            'rou-1 needs a device with driver = "fdl_console"',
        ),
        ("rou-1.sock?user=felt", "y.sock", "rou-1 =", 'and url = "unix:///run/felt/rou-1.sock"'),
    ],
)
def test_a_wrong_dealer_page_is_named_with_its_line(tmp_path: Path, old: str, new: str, words: str, said: str) -> None:
    assert DEALER.count(old) == 1
    text = DEALER.replace(old, new)
    found = check(tmp_path, text)
    assert len(found) == 1, found
    number, _, told = found[0].partition(": ")
    assert said in told
    assert int(number) == line(text, words)


def test_conflicts_with_a_dealer_page_are_named(tmp_path: Path) -> None:
    text = DEALER.replace('"fdl_console"\nurl = "unix:///run/felt/rou', '"fdl_lamps"\nurl = "unix:///run/felt/rou')
    [other] = check(tmp_path, text)
    assert "rou-1/page-1 is fdl_lamps; the dealer's page needs fdl_console" in other
    assert int(other.partition(":")[0]) == line(text, "fdl_lamps")
    text = DEALER + '[[table.device]]\nname = "lamps-1"\ndriver = "fdl_console"\nurl = "unix:///run/felt//bac-1.sock"\n'
    with pytest.raises(BadConfig, match=r"unix:///run/felt//bac-1\.sock already belongs to bac-1/page-1") as second:
        check(tmp_path, text)
    assert f":{line(text, 'felt//bac-1')}: " in str(second.value)
