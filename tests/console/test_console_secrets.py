"""What is secret at the console stands nowhere: planted, and looked for in all that it says, writes and sends."""

import asyncio
import base64
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from console_floor import Console, opened
from console_tour import bundle_made, pages
from helpers import PATIENCE

from daemon.console.auth.users import ROLES, By, Hashed, Role, _scrypt
from simulators.lab.broker import free_port

ORIGIN = {"origin": "http://pit.test", "sec-fetch-site": "same-origin"}
CONFIG = """
url = "http://pit.test"
[console.openid]
issuer = "http://127.0.0.1:{closed}"
client = "feltd"
secret_file = "{folder}/openid.secret"
[[console.webhook]]
url = "http://127.0.0.1:{closed}/hook/planted-webhook-path?key=planted-webhook-query"
secret_file = "{folder}/webhook.secret"
[mqtt]
port = {closed}
username = "console"
password_file = "{folder}/mqtt.secret"
"""
KEY = base64.b64encode(b"planted-webhook-signing-key-0001").decode()
PLANTED = {
    "of a user": "planted password of sam",
    "typed wrong": "planted wrong password",
    "typed as a name": "planted-as-a-name",
    "new": "planted new password",
    "of OpenID": "planted-openid-secret",
    "of the webhook": KEY,
    "in the webhook's path": "planted-webhook-path",
    "in the webhook's query": "planted-webhook-query",
    "of the broker": "planted-broker-password",
}


class Watched:
    """A console, and everything that came out of it."""

    def __init__(self, console: Console, folder: Path) -> None:
        self.console = console
        self.folder = folder
        self.secrets = dict(PLANTED)
        self.out: list[tuple[str, bytes]] = []
        self.logs: list[Any] = []

    def browser(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.console.app, raise_app_exceptions=False, client=("10.0.0.7", 4711))
        return httpx.AsyncClient(transport=transport, base_url="http://pit.test", headers=ORIGIN)

    def keep(self, where: str, said: httpx.Response) -> None:
        """All of an answer but the cookie, which is the browser's to keep."""
        headers = [f"{name}: {value}" for name, value in said.headers.items() if name != "set-cookie"]
        self.out.append((where, "\n".join(headers).encode()))
        if said.headers.get("content-type") == "application/zip":
            with zipfile.ZipFile(io.BytesIO(said.content)) as packed:
                self.out += [(f"{where} {name}", packed.read(name)) for name in packed.namelist()]
        else:
            self.out.append((where, said.content))

    async def log_in(self, browser: httpx.AsyncClient, name: str, password: str) -> None:
        said = await browser.post("/login", data={"name": name, "password": password})
        self.keep(f"login of {name}", said)
        if "feltd" in browser.cookies:
            self.secrets[f"session of {name}"] = browser.cookies["feltd"]

    def files(self) -> None:
        """What stands on the disk of the console's own: the store and the journal of actions."""
        for path in self.folder.iterdir():
            if path.suffix != ".secret" and path.is_file():
                self.out.append((path.name, path.read_bytes()))

    def found(self) -> list[str]:
        self.out.append(("log", repr(self.logs).encode()))
        forms = {
            f"{name} {kind}": form
            for name, secret in self.secrets.items()
            for kind, form in (
                ("", secret.encode()),
                ("in hexadecimal", secret.encode().hex().encode()),
                ("in an address", secret.replace(" ", "+").encode()),
                ("in base64", base64.b64encode(secret.encode()).rstrip(b"=")),
            )
        }
        return [f"{name} in {where}" for where, said in self.out for name, form in forms.items() if form in said]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    for name, secret in (("openid", "of OpenID"), ("webhook", "of the webhook"), ("mqtt", "of the broker")):
        (tmp_path / f"{name}.secret").write_text(PLANTED[secret] + "\n")
    with opened(tmp_path, CONFIG.format(folder=tmp_path, closed=free_port())) as console:
        one = Watched(console, tmp_path)

        async def publish(topic: str, payload: bytes) -> None:
            one.out.append((f"MQTT {topic}", payload))

        monkeypatch.setattr(console.house.site, "publish", publish)
        with structlog.testing.capture_logs() as logs:
            one.logs = logs
            yield one


def add(watched: Watched, name: str, role: Role) -> None:
    password = PLANTED["of a user"]
    hashed = Hashed(2, 8, 1, b"salt of a test..", _scrypt(password, 2, 8, 1, b"salt of a test.."))
    watched.console.house.access.users.add(By("root", "system"), name, role, (), hashed)


async def tour(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong and right logins, a token, a password, a command, a bundle; every page as everybody; a page that breaks."""
    console = watched.console
    for role in ROLES:
        add(watched, role, role)
    console.device("bac-12", "shoe-1", "bee_tek_shoe")
    console.alert("bac-12", "jam", code="jam")
    console.wait(1)
    async with watched.browser() as stranger:
        await watched.log_in(stranger, "supervisor", PLANTED["typed wrong"])
        # The form shows once more what was typed as a name, to who typed it, and nobody else hears of it.
        await stranger.post("/login", data={"name": PLANTED["typed as a name"], "password": "something else"})
        watched.keep("OpenID", await stranger.get("/login/openid"))
        watched.keep("OpenID", await stranger.get("/login/openid/done?state=planted-state&code=planted-code"))
    async with watched.browser() as ada:
        await watched.log_in(ada, "administrator", PLANTED["of a user"])
        given = {"do": "add", "name": "maria", "role": "viewer", "password": PLANTED["new"], "again": PLANTED["new"]}
        watched.keep("new user", await ada.post("/users", data=given))
        assert (await ada.post("/users", data={**given, "password": "short"})).status_code == 400
    async with watched.browser() as sam:
        await watched.log_in(sam, "supervisor", PLANTED["of a user"])
        made = await sam.post("/tokens", data={"do": "add", "name": "wall", "role": "viewer", "tables": "bac-12"})
        watched.secrets["of a token"] = made.text.partition("/wall?token=")[2].partition("<")[0].partition('"')[0]
        assert len(watched.secrets["of a token"]) > 40
        watched.keep("wall", await sam.get("/wall"))
        await sam.post("/bundle")
        await bundle_made(console.house)
        watched.keep("bundle", await sam.get("/bundle"))
    async with watched.browser() as screen:
        watched.keep("wall", await screen.get("/wall", params={"token": watched.secrets["of a token"]}))
        watched.keep("screen", await screen.get("/"))
    for role in ROLES:
        async with watched.browser() as browser:
            await watched.log_in(browser, role, PLANTED["of a user"])
            for path in pages(console.house):
                watched.keep(f"{path} as {role}", await browser.get(path))
    async with watched.browser() as browser:
        await watched.log_in(browser, "viewer", PLANTED["of a user"])

        def broken(*_: Any) -> Any:
            raise RuntimeError("planted trouble")

        monkeypatch.setattr(console.house.site, "ruleset", broken)
        said = await browser.get("/table/bac-12")
        assert (said.status_code, said.text) == (500, "Internal Server Error")


async def test_secrets_appear_in_no_output(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    house = watched.console.house
    running = asyncio.create_task(house.run())
    try:
        await tour(watched, monkeypatch)
        async with asyncio.timeout(PATIENCE):
            while not any(hook.failed for hook in house.webhooks.counts()):
                watched.console.wait(1)  # a message is due by its clock
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.wait([running])
    watched.files()
    assert len(watched.out) > 150
    assert watched.logs
    assert watched.found() == []


async def test_a_secret_in_any_form_would_be_seen(watched: Watched) -> None:
    secret = watched.secrets["new"].encode()
    watched.out += [
        ("a page", b"<p>" + secret),
        ("a trace", secret.hex().encode()),
        ("a file", base64.b64encode(secret)),
    ]
    assert len(watched.found()) == 3
