"""The support bundle: whole, checked by its manifest, without a secret, without a card of an open round."""

import contextlib
import hashlib
import io
import json
import os
import sqlite3
import stat
import tracemalloc
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from click.testing import CliRunner
from helpers import START, at_length
from hypothesis import example, given, settings, strategies as st

from daemon.cli.main import main
from daemon.config.model import Config, parse
from daemon.console.pages import bundle
from daemon.console.pages.bundle import LOG_BYTES, LOG_LINES, Given, Scrubber, make
from daemon.journal.reader import Files
from daemon.journal.rows import Entry
from daemon.journal.store import Journal
from daemon.journal.verify import verify_recent
from protocols import bee_tek_shoe

CONFIG = """
[site]
name = "lisboa"
[edge]
name = "edge-1"
journal = "{path}/edge.db"
mac_key_file = "{path}/mac"
[rules]
journal = "{path}/rules.db"
mac_key_folder = "{path}/macs"
[mqtt]
username = "feltd"
password_file = "{path}/password"
[console]
url = "https://boss:{url}@floor.example/"
journal = "{path}/console.db"
[console.openid]
issuer = "https://idp.example/?client_secret={url}"
client = "feltd"
secret_file = "{path}/openid"
[[console.webhook]]
url = "https://hooks.example/services/{url}"
secret_file = "{path}/hook"
[[table]]
name = "bac-1"
ruleset = "macau.baccarat"
[[table.device]]
name = "shoe-1"
driver = "bee_tek_shoe"
url = "serial:///dev/ttyUSB0"
[[table.device]]
name = "console-1"
driver = "fdl_console"
url = "tcp://10.0.0.1:4001"
[[table.device]]
name = "shaker-1"
driver = "billy_iii"
url = "mqtt://user:{url}@10.0.0.2:1883/?hear=a&say=b"
"""


def config_at(path: Path, secret: str = "hunter2hunter2") -> Config:
    return parse(CONFIG.format(path=path, url=quote(secret, safe="")))


def made(path: Path, config: Config, given_: Given | None = None) -> dict[str, bytes]:
    target = path / "bundle.zip"
    make(target, config, given_ or Given(START, journald=False))
    with zipfile.ZipFile(io.BytesIO(target.read_bytes())) as file:
        return {name: file.read(name) for name in file.namelist()}


def entry(device: str, type_: str, n: int, data: str = "{}", wire: bytes = b"", cause: str = "") -> Entry:
    return Entry("bac-1", device, type_, START + timedelta(seconds=n), data.encode(), wire, cause)


def heard(edge: Journal, seq: int) -> dict[str, bytes]:
    """What the rules keep beside their verdicts: how far they heard a journal of the edge."""
    return {f"stream/edge-1/{edge.name}/bac-1": b'{"seq":%d}' % seq}


# ---- what is in it


def test_all_parts_are_there_and_the_manifest_proves_them(tmp_path: Path) -> None:
    config = config_at(tmp_path)
    Journal(tmp_path / "edge.db").close()
    Journal(tmp_path / "rules.db").close()
    (tmp_path / "wheel.capture").write_bytes(b"abc")
    (tmp_path / "edge.log").write_text('{"event":"edge.started"}\n')
    given_ = Given(
        START,
        ({"device": "shoe-1"},),
        ({"name": "edge-1"},),
        ({"n": 1},),
        bundle.known_logs(config.edge.journal),
        False,
    )
    files = made(tmp_path, config, given_)
    manifest = json.loads(files.pop("manifest.json"))
    assert set(manifest["files"]) == set(files) == {
        "configuration.json", "versions.json", "devices.json", "edges.json", "incidents.json", "captures.json",
        "journal-edge.ndjson", "journal-edge-verify.txt", "journal-rules.ndjson", "journal-rules-verify.txt",
        "log-edge.log.txt",
    }  # fmt: skip
    for name, said in manifest["files"].items():
        assert said == {"sha256": hashlib.sha256(files[name]).hexdigest(), "bytes": len(files[name])}
    assert json.loads(files["captures.json"]) == [{"name": "wheel.capture", "bytes": 3}]
    versions = json.loads(files["versions.json"])
    assert versions["packages"]["msgspec"] == msgspec.__version__
    assert "good" in files["journal-edge-verify.txt"].decode()


def test_a_bundle_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make(tmp_path / "new.zip", config_at(tmp_path), Given(START, journald=False))
        (tmp_path / "old.zip").touch(0o644)
        make(tmp_path / "old.zip", config_at(tmp_path), Given(START, journald=False))
    finally:
        os.umask(before)
    assert {one.stat().st_mode & 0o777 for one in tmp_path.glob("*.zip")} == {0o600}


def test_the_page_s_bundle_opens_no_journal_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with no word of the rules every line of a table that tells cards keeps its plain words alone."""
    config = config_at(tmp_path)
    with contextlib.closing(Journal(tmp_path / "edge.db")) as edge, contextlib.closing(Journal(tmp_path / "rules.db")):
        edge.append([entry("shoe-1", "card.drawn", 1, '{"card":"KH"}')])
    (tmp_path / "edge.log").write_text('{"event":"card","table":"bac-1","device":"shoe-1","card":"KH"}\n')
    monkeypatch.setattr(bundle, "Files", None)
    monkeypatch.setattr(bundle, "verify_recent", None)
    given_ = Given(START, logs=bundle.known_logs(config.edge.journal), journald=False, journals=False)
    files = made(tmp_path, config, given_)
    assert not [name for name in files if name.startswith(("journal-", "captures"))]
    assert b"KH" not in files["log-edge.log.txt"]
    assert "`sudo feltd bundle` includes them" in "".join(json.loads(files["manifest.json"])["notes"])


def test_the_command_makes_the_bundle_with_the_journals(tmp_path: Path) -> None:
    (tmp_path / "feltd.toml").write_text(CONFIG.format(path=tmp_path, url="hunter2hunter2"), encoding="utf-8")
    with contextlib.closing(Journal(tmp_path / "edge.db")) as edge:
        edge.append([entry("console-1", "bets.opened", 1)])
    words = ["bundle", "-c", str(tmp_path / "feltd.toml"), "-o", str(tmp_path / "b.zip")]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.output) == (0, f"{tmp_path / 'b.zip'}\n")
    with zipfile.ZipFile(tmp_path / "b.zip") as file:
        assert b"bets.opened" in file.read("journal-edge.ndjson")
    done = CliRunner().invoke(main, [*words[:-1], str(tmp_path / "none" / "b.zip")])
    assert (done.exit_code, "No such file or directory" in done.output) == (2, True)


def test_a_journal_is_written_as_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty tables of a thousand rows are more than the console may have: one table's rows are held, once."""
    device = '[[table.device]]\nname = "x"\ndriver = "cammegh_ss2"\nurl = "tcp://10.0.0.9:{}"\n'
    tables = "".join(f'[[table]]\nname = "t-{n}"\n{device.format(n + 1)}' for n in range(60))
    config = parse(CONFIG.format(path=tmp_path, url="hunter2hunter2") + tables)
    with contextlib.closing(Journal(tmp_path / "edge.db")) as journal:
        journal.append([Entry(f"t-{n % 60}", "x", "y", START, b"{}", b"\xff" * 20_000, "") for n in range(600)], {})
    monkeypatch.setattr(bundle, "_versions", dict)  # takes more
    size = 600 * 40_000
    held: list[int] = []
    verify = verify_recent

    def verified(path: Path) -> Any:
        held.append(tracemalloc.get_traced_memory()[1])
        return verify(path)

    monkeypatch.setattr(bundle, "verify_recent", verified)
    tracemalloc.start()
    try:
        files = made(tmp_path, config)
    finally:
        tracemalloc.stop()
    assert len(files["journal-edge.ndjson"].splitlines()) == 600
    assert len(files["journal-edge.ndjson"]) > size
    assert held[0] < size / 4


def test_a_journal_that_breaks_off_is_proved_as_far_as_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = parse(CONFIG.format(path=tmp_path, url="hunter2hunter2") + '[[table]]\nname = "t-2"\n')
    with contextlib.closing(Journal(tmp_path / "edge.db")) as journal:
        journal.append([entry("shoe-1", "y", n) for n in range(5)], {})
    newest = Files.newest

    def breaks(files: Files, most: int, which: str, *values: Any) -> Any:
        if values == ("t-2",):
            raise sqlite3.DatabaseError("database disk image is malformed")
        return newest(files, most, which, *values)

    monkeypatch.setattr(Files, "newest", breaks)
    files = made(tmp_path, config)
    manifest = json.loads(files["manifest.json"])
    assert any("edge's journal: database disk image is malformed" in note for note in manifest["notes"])
    assert len(files["journal-edge.ndjson"].splitlines()) == 5
    for name, said in manifest["files"].items():
        assert said == {"sha256": hashlib.sha256(files[name]).hexdigest(), "bytes": len(files[name])}


def test_unreadable_part_of_a_bundle_is_noted_and_the_rest_is_there(tmp_path: Path) -> None:
    (tmp_path / "rules.db").write_bytes(b"no journal")
    files = made(tmp_path, config_at(tmp_path), Given(START, logs=(tmp_path / "gone.log",), journald=False))
    notes = json.loads(files["manifest.json"])["notes"]
    assert any("edge's journal" in note for note in notes)
    assert any("what may be a card is left out" in note for note in notes)
    assert any("gone.log" in note for note in notes)
    assert "configuration.json" in files


def test_a_bundle_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "_versions", fails)
    with pytest.raises(OSError, match="No space"):
        make(tmp_path / "bundle.zip", config_at(tmp_path), Given(START, journald=False))
    assert not (tmp_path / "bundle.zip").exists()


def test_a_log_is_bounded(tmp_path: Path) -> None:
    line = '{"event":"x","text":"' + "y" * 2000 + '","password":"Zqhunter' + "2" * 500 + '"}\n'
    (tmp_path / "edge.log").write_text(line * (LOG_LINES + 9))
    config = config_at(tmp_path)
    files = made(tmp_path, config, Given(START, logs=bundle.known_logs(config.edge.journal), journald=False))
    assert LOG_BYTES // 2 < len(files["log-edge.log.txt"]) <= LOG_BYTES
    assert b"2222" not in files["log-edge.log.txt"]  # nor of the line that was cut


def journalctl(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program of that name is the only one there is."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "journalctl"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder / "bin"))


def units_log(files: dict[str, bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in files["log-journald.ndjson"].splitlines()]


def test_the_systems_log_is_asked_for_our_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = '{\\"event\\":\\"asked\\",\\"password\\":\\"s3cr3t-s3cr3t\\"}'
    line = f'{{"__REALTIME_TIMESTAMP":"1","_SYSTEMD_UNIT":"feltd-edge.service","MESSAGE":"{message}","X":"$*"}}'
    journalctl(tmp_path, monkeypatch, f"echo \"$*\" > {tmp_path}/words\necho '{line}'")
    [said] = units_log(made(tmp_path, config_at(tmp_path), Given(START)))
    assert said == {
        "at": "1970-01-01T00:00:00.000001Z",
        "unit": "feltd-edge.service",
        "message": {"timestamp": "1970-01-01T00:00:00.000001Z", "event": "asked", "password": "(withheld)"},
    }
    words = (tmp_path / "words").read_text().split()
    assert words[words.index("-u") + 1] == "feltd-*"
    assert words[words.index("-o") + 1] == "json"


def test_the_systems_log_is_redacted_as_every_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edge, console = "feltd-edge.service", "feltd-console.service"

    def line(n: int, unit: str, message: Any, **more: Any) -> str:
        return json.dumps({"__REALTIME_TIMESTAMP": f"{n}000000", "_SYSTEMD_UNIT": unit, "MESSAGE": message, **more})

    said = [
        line(1, "init.scope", "feltd-edge.service: Main process exited, code=killed", UNIT=edge),
        line(2, edge, "-----BEGIN PRIVATE KEY-----"),
        line(3, console, list(b"the shoe said KH, token=abcdefgh")),
        line(4, edge, "c2VjcmV0"),
        line(5, edge, "-----END PRIVATE KEY-----"),
        line(6, edge, json.dumps({"event": "read", "table": "bac-1", "card": "KH"})),
        line(6, edge, json.dumps({"event": "device.lost", "table": "bac-1", "device": "shaker-1", "reason": "gone"})),
        line(6, edge, json.dumps({"event": "device.lost", "table": "bac-1", "device": "shoe-1", "reason": "KH"})),
        line(6, edge, json.dumps({"event": "device.lost", "table": "bac-1", "device": "nobody", "reason": "KH"})),
        line(7, edge, None),
        "no JSON",
        json.dumps(["KH"]),
    ]
    (tmp_path / "said").write_text("\n".join(said), encoding="utf-8")
    journalctl(tmp_path, monkeypatch, f'while read -r one; do printf "%s\\n" "$one"; done < {tmp_path}/said')
    at = {"timestamp": "1970-01-01T00:00:06.000000Z", "table": "bac-1"}
    held = {"withheld": "a round may be open"}
    assert [(one["unit"], one["message"]) for one in units_log(made(tmp_path, config_at(tmp_path), Given(START)))] == [
        (edge, "feltd-edge.service: Main process exited, code=killed\n(withheld)"),
        (console, "the shoe said (card), token=(withheld)"),
        (edge, at | {"event": "read"} | held),
        (edge, at | {"event": "device.lost", "device": "shaker-1", "reason": "gone"}),  # it knows no card
        (edge, at | {"event": "device.lost", "device": "shoe-1"} | held),
        (edge, at | {"event": "device.lost", "device": "nobody"} | held),
        (edge, ""),
    ]


SILENT = (
    "journald shows no line of feltd-*: it may have none, or this service may not read it"
    " (SupplementaryGroups=systemd-journal in its unit)"
)


@pytest.mark.parametrize(
    ("script", "notes"),
    [
        (
            "echo 'No journal files were opened due to insufficient permissions.' >&2; exit 1",
            [
                "journalctl: No journal files were opened due to insufficient permissions.",
                SILENT,
            ],
        ),
        (
            "echo '-- No entries --'",
            [
                SILENT,
            ],
        ),
        (None, ["no journald on this computer"]),
    ],
)
def test_the_manifest_says_that_the_systems_log_could_not_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, notes: list[str]
) -> None:
    Journal(tmp_path / "edge.db").close()
    Journal(tmp_path / "rules.db").close()
    if script is None:
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        journalctl(tmp_path, monkeypatch, script)
    files = made(tmp_path, config_at(tmp_path), Given(START))
    assert json.loads(files["manifest.json"])["notes"] == notes
    assert "log-journald.ndjson" not in files


# ---- no card of an open round


def test_of_a_round_that_may_be_open_neither_card_nor_wire_nor_hash_is_told(tmp_path: Path) -> None:
    wire = bee_tek_shoe.encode(bee_tek_shoe.Drawn("KH"))
    other = bee_tek_shoe.encode(bee_tek_shoe.Drawn("9D"))
    with_cards = Journal(tmp_path / "edge.db")
    with_cards.append(
        [
            entry("shoe-1", "card.drawn", 1, '{"card":"9D"}', other),
            entry("console-1", "round.paid", 2),
            entry("shoe-1", "card.drawn", 3, '{"card":"KH"}', wire),
            entry("console-1", "deal.corrected", 4, '{"hands":{"player":["KH"]}}'),
            entry("shaker-1", "device.online", 5, '{"continuous":true}'),
        ]
    )
    with_cards.close()
    rules = Journal(tmp_path / "rules.db")
    rules.append(
        [
            entry("round", "resolved", 2, '{"result":{"card":"9D"}}', cause="edge-1:bac-1:2/0"),
            entry("round", "irregular", 3, '{"irregularity":{"text":"a card too many: KH"}}', cause="edge-1:bac-1:3/0"),
        ],
        heard(with_cards, 3),
    )
    rules.close()
    stamp = (START + timedelta(seconds=3)).isoformat()
    (tmp_path / "rules.log").write_text(
        json.dumps({"event": "round.irregular", "table": "bac-1", "text": "KH", "timestamp": stamp})
        + '\n{"event":"x","reason":"KH"}\nValueError: KH\n'
    )
    config = config_at(tmp_path)
    given_ = Given(START, ({"faults": "KH"},), logs=bundle.known_logs(config.edge.journal), journald=False)
    files = made(tmp_path, config, given_)
    with zipfile.ZipFile(tmp_path / "bundle.zip") as file:
        assert file.testzip() is None
    for name, data in files.items():
        for hidden in (b"KH", wire.strip(), wire.hex().encode(), wire.strip().hex().encode()):
            assert hidden not in data, name
    rows = [json.loads(line) for line in files["journal-edge.ndjson"].splitlines()]
    assert [(row["seq"], "withheld" in row) for row in rows] == [
        (1, False), (2, False), (3, True), (4, True), (5, False),
    ]  # fmt: skip
    assert rows[0]["data"] == {"card": "9D"}
    assert rows[0]["wire"] == other.hex()
    assert not any("hash" in row for row in rows)


OPEN = [
    ("console-1", "bets.opened", "{}", b""),
    ("shoe-1", "card.drawn", '{"card":"KH"}', bee_tek_shoe.encode(bee_tek_shoe.Drawn("KH"))),
    ("shaker-1", "device.online", '{"continuous":true}', b""),
]


@pytest.mark.parametrize("position", [b"5000 left", b'{"seq":5000,"left":true}', b"no position"])
@pytest.mark.parametrize(("clock", "known"), [(3600, 0), (-3600, 0), (3600, 3), (-3600, 3), (3600, 5000)])
def test_of_a_journal_that_was_replaced_no_card_is_told(
    tmp_path: Path, clock: int, known: int, position: bytes
) -> None:
    """Its seqs are not those of the last end, which the rules heard in another; nor need its clock be right.

    `known`: how far the rules heard the new journal.
    """
    rules = Journal(tmp_path / "rules.db")
    memory = {"stream/edge-1/0ld/bac-1": position}
    rules.append([entry("round", "resolved", 1, '{"result":{}}', cause="edge-1:bac-1:5000/0")], memory)
    new = Journal(tmp_path / "edge.db")
    new.append([entry(device, type_, clock + n, data, wire) for n, (device, type_, data, wire) in enumerate(OPEN)])
    at = (START + timedelta(seconds=clock)).isoformat()
    (tmp_path / "edge.log").write_text(f'{{"table":"bac-1","device":"shoe-1","reason":"KH","timestamp":"{at}"}}\n')
    if known:
        rules.append([], heard(new, known))
    rules.close()
    new.close()
    config = config_at(tmp_path)
    files = made(tmp_path, config, Given(START, logs=bundle.known_logs(config.edge.journal), journald=False))
    rows = [json.loads(line) for line in files["journal-edge.ndjson"].splitlines()]
    assert [(row["seq"], "withheld" in row) for row in rows] == [(1, True), (2, True), (3, False)]
    assert "withheld" not in files["journal-rules.ndjson"].decode()
    assert all(hidden not in data for data in files.values() for hidden in (b"KH", OPEN[1][3].hex().encode()))


def test_a_journal_that_was_closed_and_goes_on_is_the_same(tmp_path: Path) -> None:
    edge, rules = Journal(tmp_path / "edge.db"), Journal(tmp_path / "rules.db")
    edge.append([entry("shoe-1", "card.drawn", 1, '{"card":"9D"}')])
    rules.append([entry("round", "resolved", 1, '{"result":{}}', cause="edge-1:bac-1:1/0")], heard(edge, 1))
    for journal in (edge, rules):
        assert journal.rotate()
    edge.append([entry("shoe-1", "card.drawn", 2, '{"card":"KH"}')])
    for journal in (edge, rules):
        journal.close()
    files = made(tmp_path, config_at(tmp_path))
    rows = [json.loads(line) for line in files["journal-edge.ndjson"].splitlines()]
    assert [(row["seq"], "withheld" in row) for row in rows] == [(1, False), (2, True)]


def test_without_the_rules_no_card_is_told_at_all(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "edge.db")
    journal.append([entry("shoe-1", "card.drawn", 1, '{"card":"KH"}')])
    journal.close()
    files = made(tmp_path, config_at(tmp_path))
    assert all(b"KH" not in data for data in files.values())


# ---- no secret

SECRETS = st.text(
    st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!$%&()*+-.=?@^_~#/:"),
    min_size=10,
    max_size=24,
).map(lambda text: "Zq" + text + "9x")


def plant(path: Path, secret: str) -> Config:
    """A site that says its secret wherever one could stand."""
    for file in path.glob("*.db*"):
        file.unlink()
    config = config_at(path, secret)
    quoted = quote(secret, safe="")
    (path / "macs").mkdir(exist_ok=True)
    for name in ("password", "openid", "hook", "mac", "macs/edge-1.key"):
        (path / name).write_text(secret)
    said = [
        json.dumps({"event": "a", "password": secret, "deep": [{"api_key": secret, "Set-Cookie": secret}]}),
        json.dumps({"event": "b", "url": f"mqtt://feltd:{quoted}@10.0.0.9:1883/x", "text": f"it said {secret} twice"}),
        json.dumps({"event": "c", "headers": {"Authorization": f"Bearer {secret}"}}),
        json.dumps({"event": secret, secret: 1}),
        f"GET https://hooks.example/services/{quoted} failed",
        f'Traceback: password="{secret}" at tcp://x:{quoted}@h:1/',
        f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----",
        f"Authorization: Bearer {quoted}",
    ]
    (path / "edge.log").write_text("\n".join(said) + "\n", encoding="utf-8")
    journal = Journal(path / "edge.db")
    order = {"command": "set-parameter", "name": "wifi_password", "value": secret}
    told = {"reason": f"mqtt://u:{quoted}@h refuses", "token": secret}
    journal.append(
        [
            entry("shaker-1", "device.offline", 1, json.dumps(told)),
            entry("shaker-1", "device.commanded", 2, json.dumps({"text": secret}), json.dumps(order).encode()),
            entry("shaker-1", "device.online", 3, "{}", f"password={secret}\n".encode()),
        ]
    )
    journal.close()
    rules = Journal(path / "rules.db")
    rules.append([entry("round", "resolved", 1, json.dumps({"secret": secret}), cause="edge-1:bac-1:1/0")])
    rules.close()
    return config


@given(secret=SECRETS)
@example(secret="Zq%25percent+9x")
@example(secret="Zq/slash@at:colon9x")
@settings(max_examples=at_length(6, 300))
def test_no_secret_that_stands_anywhere_is_in_any_file(tmp_path_factory: pytest.TempPathFactory, secret: str) -> None:
    path = tmp_path_factory.mktemp("site")
    config = plant(path, secret)
    devices = ({"meta": {"url": config.table[0].device[2].url}, "state": {"reason": f"token: {secret}"}},)
    given_ = Given(
        START, devices, ({"password": secret},), ({"note": secret},), bundle.known_logs(config.edge.journal), False
    )
    files = made(path, config, given_)
    for name, data in files.items():
        for form in {secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1]}:
            assert form.encode() not in data, (name, form)
            assert form.encode().hex().encode() not in data, (name, form)
            assert form not in name
    assert b"set-parameter" in files["journal-edge.ndjson"]  # the rest is still there
    assert b"feltd" in files["configuration.json"]


def test_files_with_secrets_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = plant(tmp_path, "Zqhunter2hunter9x")
    opened: list[str] = []
    real = io.open

    def watched(file: object, *rest: object, **more: object) -> object:
        opened.append(str(file))
        return real(file, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(io, "open", watched)
    files = made(tmp_path, config, Given(START, logs=bundle.known_logs(config.edge.journal), journald=False))
    assert any(one.endswith("edge.log") for one in opened)
    assert not [one for one in opened if Path(one).name in ("password", "openid", "hook", "mac", "edge-1.key")]
    said = dict(json.loads(files["configuration.json"])["files"])
    assert said["mqtt.password_file"] == "there"
    assert said["journal.key"] == "not set"
    assert (said["edge.mac_key_file"], said["rules.mac_key_folder"]) == ("there", "there")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password=abc rest", "password=(withheld) rest"),
        ("DB_PASSWORD: 'a b' rest", "DB_PASSWORD: (withheld) rest"),
        ('{"token": "abc"}', '{"token": (withheld)}'),
        ("http://u:p@h/x", "http://(withheld)@h/x"),
        ("http://h/x", "http://h/x"),
        ("Authorization: Basic abc=", "Authorization: (withheld) (withheld)"),
        ("card.drawn seq=5", "card.drawn seq=5"),
    ],
)
def test_text_that_looks_like_a_secret_is_taken_out(text: str, left: str) -> None:
    assert Scrubber(parse('[site]\nname="s"\n[edge]\nname="e"\n')).text(text) == left


def test_an_instant_without_a_zone_is_not_before_anything() -> None:
    assert not bundle._before("2026-01-01T00:00:00", datetime.now(UTC))
    assert not bundle._before(None, datetime.now(UTC))
