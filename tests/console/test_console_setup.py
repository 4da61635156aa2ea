"""Tables of this computer are changed from the page: checked, shown, and made by the command behind the socket."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from change_socket import computer
from console_floor import Console, opened
from httpx import AsyncClient, Response

from daemon.config.model import load
from daemon.console.auth.users import By, hash_password
from daemon.console.site.actions import read_actions

TWIN = {"name": "rou-4", "device-0-url": "tcp://127.0.0.1:4003", "why": "a twin"}


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Path]:
    with computer(tmp_path) as path:
        yield path


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.begin()
        one.device("rou-3", "wheel-1", "cammegh_ss2")
        yield one


def fields_of(page: Response) -> dict[str, str]:
    """The form of a page, as a browser sends it."""
    form = re.search(r'<form class="stack card".*?</form>', page.text, re.DOTALL)
    assert form is not None, page.text
    fields = dict(re.findall(r'<input (?:type="hidden" )?name="([^"]+)" value="([^"]*)"', form[0]))
    fields |= dict(re.findall(r'<textarea name="([^"]+)"[^>]*>(.*?)</textarea>', form[0], re.DOTALL))
    for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', form[0], re.DOTALL):
        chosen = re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', options)
        fields[name] = (chosen[1] or chosen[2]) if chosen else ""
    return {name: value.replace("&#34;", '"') for name, value in fields.items()}


async def checked(browser: AsyncClient, act: str, table: str, **given: str) -> Response:
    """The form of a table, sent with these values."""
    page = await browser.get(f"/tables/{act}", params={"table": table})
    assert page.status_code == 200, page.text
    typed = {name.replace("_", "-"): value for name, value in given.items()}
    return await browser.post(f"/tables/{act}", data=fields_of(page) | typed)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def edit(config: Path) -> None:
    config.write_text(text_of(config) + "# edited by hand\n", encoding="utf-8")


def draft_of(page: Response) -> str:
    found = re.search(r'action="(/tables/draft/[0-9a-f]+)"', page.text)
    assert found is not None, page.text
    return found[1]


async def test_a_technician_adds_a_twin(config: Path, console: Console) -> None:
    async with console.browser("technician") as browser:
        tables = await browser.get("/tables")
        assert "tcp://127.0.0.1:4002" in tables.text
        shown = await checked(browser, "twin", "rou-3", **TWIN)
        assert shown.status_code == 200, shown.text
        assert "+name = &#34;rou-4&#34;" in shown.text
        assert load(config).table[-1].name == "rou-3", "nothing is changed yet"
        made = await browser.post(draft_of(shown))
    assert "In use: version 2" in made.text
    first, second = load(config).table
    assert (second.name, second.ruleset, second.options) == ("rou-4", first.ruleset, first.options)
    assert second.device[0].options == {"shortest_spin": 0.5}
    assert "# By the stairs." in text_of(config)
    assert '"technician@lisboa"' in text_of(config.parent / "history/log.ndjson")
    (action,) = read_actions(console.journal.path, 5, action="table.add")
    assert (action.user, action.target) == ("technician@lisboa", "rou-4")


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        ({"name": "Rou 4"}, "name", "small letters, digits and hyphens"),
        ({"ruleset": "macau.roulete"}, "ruleset", "did you mean &#39;macau.roulette&#39;"),
        ({"options": "beting = timed"}, "options", "beting"),
        ({"options": "betting"}, "options", "write NAME = VALUE"),
        ({"device_0_url": "tcp://127.0.0.1:4002"}, "device-0-options", "already belongs to rou-3/wheel-1"),
        (
            {"device_0_url": "mqtt://10.6.6.6/?hear=a&say=b&username=x&password%5ffile=/etc/feltd/edge-mac.key"},
            "device-0-options",
            "names a file",
        ),
        ({"device_0_driver": "cammegh"}, "device-0-options", "cammegh"),
        ({"device_0_options": "shortest_spin = -1"}, "device-0-options", "shortest_spin"),
    ],
)
async def test_a_mistake_stands_at_its_field(
    config: Path, console: Console, given: dict[str, str], field: str, says: str
) -> None:
    before = text_of(config)
    async with console.browser("technician") as browser:
        page = await checked(browser, "twin", "rou-3", **(TWIN | given))
    assert page.status_code == 400
    after_the_field = page.text[page.text.index(f'name="{field}"') :]
    assert says in after_the_field[: after_the_field.index("<label")], page.text
    assert text_of(config) == before
    assert not (config.parent / "history/log.ndjson").exists()


async def test_what_the_devices_of_a_table_lack_is_said_before_it_is_made(config: Path, console: Console) -> None:
    async with console.browser("supervisor") as browser:
        page = await checked(browser, "twin", "rou-3", **TWIN, device_0_driver="alpha_sign", device_0_options="")
    assert "rou-4: no device here reports" in page.text
    assert load(config).table[-1].name == "rou-3"


async def test_other_odds_or_limits_need_another_supervisor(config: Path, console: Console) -> None:
    wanted = {"options": "betting = no_more_bets\nsmallest_chip = 50", "why": "limits"}
    async with console.browser("technician") as tess, console.browser("supervisor") as sam:
        shown = await checked(tess, "change", "rou-3", **wanted)
        assert "a supervisor makes this change" in shown.text
        draft = re.findall(r"/tables/draft/[0-9a-f]+", (await tess.get("/tables")).text)[0]
        assert (await tess.post(draft)).status_code == 403
        own = await checked(sam, "change", "rou-3", **wanted)
        assert "another supervisor" in own.text
        assert "smallest_chip" not in load(config).table[0].options
        assert "In use: version 2" in (await sam.post(draft)).text
    assert load(config).table[0].options["smallest_chip"] == 50
    assert '"technician@lisboa, supervisor@lisboa"' in text_of(config.parent / "history/log.ndjson")


async def test_a_local_supervisor_proves_himself_by_a_code(config: Path, console: Console) -> None:
    async with console.browser("technician") as tess:
        await checked(tess, "change", "rou-3", options="betting = no_more_bets\nsmallest_chip = 50", why="limits")
        draft = re.findall(r"/tables/draft/[0-9a-f]+", (await tess.get("/tables")).text)[0]
    users = console.house.access.users
    users.add(By("root", "system"), "sam", "supervisor", (), hash_password("a felt of many colours"))
    async with console.browser(secret=users.begin("sam", "10.0.0.7", "test")) as sam:
        assert (await sam.post(draft)).status_code == 403
    assert "smallest_chip" not in load(config).table[0].options


async def test_a_change_that_was_checked_on_another_file_is_refused(config: Path, console: Console) -> None:
    async with console.browser("technician") as browser:
        draft = draft_of(await checked(browser, "twin", "rou-3", **TWIN))
        edit(config)
        refused = await browser.post(draft)
        assert (refused.status_code, "changed meanwhile" in refused.text) == (409, True)
        assert (await browser.post(draft)).status_code == 404
    assert len(load(config).table) == 1


async def test_a_table_is_removed(config: Path, console: Console) -> None:
    async with console.browser("technician") as browser:
        await browser.post(draft_of(await checked(browser, "twin", "rou-3", **TWIN)))
        shown = await checked(browser, "remove", "rou-4", why="closed")
        assert "-name = &#34;rou-4&#34;" in shown.text
        await browser.post(draft_of(shown))
    assert [one.name for one in load(config).table] == ["rou-3"]


async def test_who_may_change_no_tables_gets_no_page(config: Path, console: Console) -> None:
    before = text_of(config)
    async with console.browser("viewer") as browser:
        for path in ("/tables", "/tables/add", "/tables/draft/x"):
            assert (await browser.get(path)).status_code == 403
        assert (await browser.post("/tables/add", data=TWIN)).status_code == 403
    assert text_of(config) == before


async def test_without_the_socket_the_page_says_what_to_start(tmp_path: Path, console: Console) -> None:
    async with console.browser("technician", **{"accept-language": "pt"}) as browser:
        page = await browser.get("/tables")
    assert "systemctl start feltd-change.socket" in page.text
    assert "as mesas não responde" in page.text


def test_the_command_refuses_what_is_no_request(config: Path) -> None:
    command = [sys.executable, "-m", "daemon.cli", "table", "answer", "-c", str(config)]
    for line in (b"", b"{}\n", b'{"type":"make","wanted":{"act":"add"}}\n', b"x" * 2_000_000):
        done = subprocess.run(command, input=line, capture_output=True, check=True)
        assert b'"type":"refused"' in done.stdout, line[:80]
    config.write_text("[[table]", encoding="utf-8")  # broken by hand since the page was opened
    line = b'{"type":"plan","wanted":{"act":"add","name":"rou-4"}}\n'
    assert b'"type":"refused"' in subprocess.run(command, input=line, capture_output=True, check=True).stdout
