"""Users of another provider, against a real one on loopback with a key of its own: good logins, and every bad one."""

import asyncio
import base64
import contextlib
import functools
import hashlib
import importlib.util
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx
import pytest
import uvicorn
from console_inn import PASSWORD, Inn, log_in, post, text
from helpers import PATIENCE, at_length
from hypothesis import given, settings, strategies as st
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from daemon.console.pages import openid
from daemon.console.site.actions import read_actions

CLIENT, SECRET = "feltd:console", "a secret of the client's %"
KEY, OTHER = (RSAKey.generate_key(2048, {"use": "sig", "kid": kid, "alg": "RS256"}) for kid in ("one", "two"))


class Server(uvicorn.Server):
    """Signals belong to the tests. It ends when it is told to, where uvicorn looks ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.ended.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Provider:
    """A small OpenID provider: whoever comes is `claims`. What a test twists, it does wrong."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.port = 0
        self.claims: dict[str, Any] = {"sub": "4711", "preferred_username": "ana", "feltd_role": "technician"}
        self.metadata: dict[str, Any] = {}
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "one"}
        self.key: Any = KEY
        self.raw: dict[str, Response] = {}
        self.token: str | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.access_token = "for nobody"
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discovery),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
            ]
        )

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _discovery(self, _request: Request) -> Response:
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": self.issuer + "/authorize",
            "token_endpoint": self.issuer + "/token",
            "jwks_uri": self.issuer + "/keys",
        }
        return self.raw.get("discovery") or JSONResponse(found | self.metadata)

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT, "S256")
        assert asked["scope"] == "openid profile"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?code={code}&state={asked['state']}&iss={self.issuer}")

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        if "authorization" in request.headers:
            pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
            given = tuple(parse_qs(f"a={one}")["a"][0] for one in pair.split(":"))
        else:
            given = form["client_id"], form["client_secret"]
        asked = self.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if (
            asked is None
            or given != (CLIENT, SECRET)
            or form["grant_type"] != "authorization_code"
            or form["redirect_uri"] != asked["redirect_uri"]
            or challenge.decode() != asked["code_challenge"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(self.now())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
        } | self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        token = self.token or jwt.encode(self.header, claims, self.key, algorithms=[self.header["alg"]])
        return self.raw.get("token") or JSONResponse({"access_token": self.access_token, "id_token": token})

    async def _keys(self, _request: Request) -> Response:
        strange = {"kty": "future", "kid": "x"}
        keys = [key.as_dict(private=False) for key in (KEY,)]
        return self.raw.get("keys") or JSONResponse({"keys": [strange, *keys]})


@pytest.fixture(autouse=True, scope="module")
def certificates_are_read_once() -> Iterator[None]:
    """Every client of httpx reads those of the system, which nobody here shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


class Both:
    """A console, its provider, and a browser between them."""

    def __init__(self, inn: Inn, provider: Provider, stop: Callable[[], Any]) -> None:
        self.inn = inn
        self.provider = provider
        self.stop = stop
        self.browser = inn.browser()
        self.outside = httpx.AsyncClient(timeout=PATIENCE)

    async def there(self, to: str = "") -> str:
        """To the provider and back: the address it sends the browser to."""
        begun = await self.browser.get("/login/openid", params={"to": to})
        assert begun.status_code == 303
        back = await self.outside.get(begun.headers["location"])
        assert back.status_code == 307
        return back.headers["location"]

    async def come_in(self, to: str = "") -> httpx.Response:
        return await self.browser.get(await self.there(to))

    def who(self) -> list[tuple[str, str, bool]]:
        return [(one.user, one.role, one.outside) for one in self.inn.users.sessions()]


@pytest.fixture
async def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    monkeypatch.setattr(openid, "_TIMEOUT", PATIENCE)
    listening = socket.create_server(("127.0.0.1", 0))
    (tmp_path / "secret").write_text(SECRET + "\n", encoding="utf-8")
    port = listening.getsockname()[1]
    console = (
        f'dealer = {{ bac-1 = "/run/feltd/console/bac-1.sock" }}\n'
        f'[console.openid]\nissuer = "http://127.0.0.1:{port}"\nclient = "{CLIENT}"\n'
        f'secret_file = "{tmp_path / "secret"}"'
    )
    inn = Inn(tmp_path, console)
    provider = Provider(lambda: inn.clock.now.timestamp())
    provider.port = port
    server = Server(uvicorn.Config(provider.app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve([listening]))

    async def stop() -> None:
        server.ended.set()
        await serving

    one = Both(inn, provider, stop)
    yield one
    await one.browser.aclose()
    await one.outside.aclose()
    if not serving.done():
        await stop()
    listening.close()
    inn.close()


# ---- good


async def test_somebody_comes_in_from_outside(both: Both) -> None:
    assert "/login/openid?to=/alerts" in (await both.browser.get("/login?to=/alerts")).text
    begun = await both.browser.get("/login/openid?to=/alerts")
    pattern = r"feltd-openid=[^;]+; HttpOnly; Max-Age=600; Path=/; SameSite=lax"
    assert re.fullmatch(pattern, begun.headers["set-cookie"])
    came = await both.come_in("/alerts")
    assert came.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/alerts">' in came.text
    assert "feltd-openid" not in both.browser.cookies
    assert both.who() == [("openid:ana:4711", "technician", True)]
    assert (await both.browser.get("/account")).status_code == 200
    assert (await both.browser.get("/users")).status_code == 403
    assert both.inn.said() == [("openid:ana:4711", "login", "")]
    assert read_actions(both.inn.journal.path, 1)[0].detail == {
        "address": "10.0.0.7",
        "issuer": both.provider.issuer,
        "sub": "4711",
    }


async def test_their_sessions_end_like_others(both: Both) -> None:
    await both.come_in()
    both.inn.clock.on(minutes=30)
    assert (await both.browser.get("/account")).status_code == 303
    await both.come_in()
    async with both.inn.as_("administrator") as administrator:
        page = await administrator.get("/users")
        assert "openid:ana:4711" in text(page)
        await post(administrator, "/users", do="end", name="openid:ana:4711")
    assert (await both.browser.get("/account")).status_code == 303
    await both.come_in()
    assert (await post(both.browser, "/logout")).status_code == 303
    assert both.who() == [("adm", "administrator", False)]


@pytest.mark.parametrize(
    ("claims", "user", "role"),
    [
        ({"feltd_role": ["offline_access", "supervisor"]}, "openid:ana:4711", "supervisor"),
        ({"preferred_username": None}, "openid::4711", "technician"),
        ({"preferred_username": "Zoë <b>", "sub": "a|b"}, "openid:Zo___b_:a|b", "technician"),
        ({"aud": [CLIENT]}, "openid:ana:4711", "technician"),
        ({"aud": [CLIENT, "other"], "azp": CLIENT}, "openid:ana:4711", "technician"),
        ({"exp": 1_795_176_000 - 59}, "openid:ana:4711", "technician"),  # clocks differ
    ],
)
async def test_provider_claims_that_give_a_right(both: Both, claims: dict[str, Any], user: str, role: str) -> None:
    assert both.inn.clock.now.timestamp() == 1_795_176_000
    both.provider.claims |= claims
    assert (await both.come_in()).status_code == 200
    assert both.who() == [(user, role, True)]


async def test_a_dealer_from_outside_begins_at_the_table(both: Both) -> None:
    both.provider.claims["feltd_role"] = "dealer"
    assert "url=/dealer/bac-1" in (await both.come_in()).text


async def test_a_provider_that_wants_the_secret_in_the_form(both: Both) -> None:
    both.provider.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    assert (await both.come_in()).status_code == 200


async def test_behind_tls_its_cookie_is_for_this_host(tmp_path: Path, both: Both) -> None:
    (tmp_path / "tls").mkdir()
    openid_ = f'issuer = "{both.provider.issuer}"\nclient = "{CLIENT}"\nsecret_file = "{tmp_path / "secret"}"'
    inn = Inn(tmp_path / "tls", f'url = "https://pit.lisboa/"\n[console.openid]\n{openid_}')
    async with inn.browser() as browser:
        begun = await browser.get("/login/openid")
        assert re.match(r"__Host-feltd-openid=.*; SameSite=lax; Secure$", begun.headers["set-cookie"])
        asked = parse_qs(urlsplit(begun.headers["location"]).query)
        assert asked["redirect_uri"] == ["https://pit.lisboa/login/openid/done"]
    inn.close()


# ---- bad


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": None},
        {"aud": "another", "azp": CLIENT},
        {"aud": [CLIENT, "another"]},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"azp": "another"},
        {"iss": "https://evil.example"},
        {"iss": None},
        {"exp": 1_795_176_000 - 60},
        {"exp": None},
        {"exp": "soon"},
        {"iat": 1_795_176_000 + 61},
        {"iat": None},
        {"nbf": 1_795_176_000 + 61},
        {"sub": None},
        {"sub": ""},
        {"sub": 4711},
        {"sub": "a\nb"},
        {"sub": "x" * 256},
        {"at_hash": "of another token"},
    ],
)
async def test_a_token_that_is_not_for_this_login(both: Both, claims: dict[str, Any]) -> None:
    both.provider.claims |= claims
    refused = await both.come_in()
    assert (refused.status_code, both.who()) == (403, [])
    assert "The login was not completed. Begin again." in text(refused)
    assert "feltd" not in both.browser.cookies


@pytest.mark.parametrize("how", ["other key", "no signature", "client secret", "public key as secret", "text"])
async def test_a_token_that_the_provider_did_not_sign(both: Both, how: str) -> None:
    provider = both.provider
    match how:
        case "other key":
            provider.key = OTHER
        case "no signature":
            parts = (b'{"alg":"none"}', b'{"iss":"%s","sub":"4711"}' % provider.issuer.encode())
            provider.token = ".".join([*(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in parts), ""])
        case "client secret":
            provider.header, provider.key = {"alg": "HS256", "kid": "one"}, OctKey.import_key(SECRET)
        case "public key as secret":
            provider.header = {"alg": "HS256", "kid": "one"}
            provider.key = OctKey.import_key(base64.b64encode(KEY.as_pem(private=False)).decode())
        case _:
            provider.token = "no token at all"
    assert (await both.come_in()).status_code == 403
    assert both.who() == []


@settings(max_examples=at_length(50, 1_000))
@given(st.text(max_size=100) | st.binary(max_size=100).map(lambda raw: raw.decode("latin-1")))
def test_no_text_is_a_token(shared: Any, token: str) -> None:
    with pytest.raises(openid._Refused):
        shared._verified(openid._Tokens(token), openid._Keys([KEY.as_dict(private=False)]), "nonce")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    inn = Inn(
        tmp_path_factory.mktemp("openid"),
        '[console.openid]\nissuer = "https://id.example"\nclient = "c"\nsecret_file = "s"',
    )
    yield openid._OpenId(inn.house.context)
    inn.close()


@pytest.mark.parametrize("role", [None, "", "owner", "Supervisor", 7, {}, [], ["user"], ["viewer", "supervisor"]])
async def test_a_role_nobody_knows_is_refused_and_told(both: Both, role: object) -> None:
    both.provider.claims["feltd_role"] = role
    refused = await both.come_in()
    assert (refused.status_code, both.who()) == (403, [])
    assert "This account has no role at this console." in text(refused)
    assert both.inn.said() == [("openid:ana:4711", "login.refused", "")]


@pytest.mark.parametrize("how", ["state", "no state", "no cookie", "other cookie", "old", "future", "iss", "error"])
async def test_an_answer_that_was_tampered_with(both: Both, how: str) -> None:
    back = await both.there()
    match how:
        case "state":
            back = re.sub(r"state=.", "state=~", back)
        case "no state":
            back = re.sub(r"&state=[^&]*", "", back)
        case "no cookie":
            both.browser.cookies.clear()
        case "other cookie":  # another browser's login: nobody is brought into somebody else's account
            both.browser.cookies.clear()
            await both.there()
        case "old":
            both.inn.clock.on(seconds=601)
        case "future":
            both.inn.clock.on(seconds=-1)
        case "iss":
            back = re.sub(r"iss=.*", "iss=https://evil.example", back)
        case _:
            back = back.replace("code=", "error=access_denied&x=")
    refused = await both.browser.get(back)
    assert (refused.status_code, both.who()) == (403, [])
    assert "The login was not completed. Begin again." in text(refused)


async def test_an_answer_counts_once(both: Both) -> None:
    back = await both.there()
    cookies = dict(both.browser.cookies)
    assert (await both.browser.get(back)).status_code == 200
    async with both.inn.browser() as again:
        again.cookies.set("feltd-openid", cookies["feltd-openid"], domain="pit.test", path="/")
        assert (await again.get(back)).status_code == 403
    assert len(both.who()) == 1


@pytest.mark.parametrize("to", ["//evil.example", "https://evil.example", "\\", '"><script>'])
async def test_the_way_after_it_stays_in_the_house(both: Both, to: str) -> None:
    assert 'content="0; url=/">' in (await both.come_in(to)).text


# ---- away


async def test_a_provider_that_is_down_keeps_nobody_of_here_out(both: Both) -> None:
    back = await both.there()
    await both.stop()
    for path in ("/login/openid", back):
        away = await both.browser.get(path)
        assert away.status_code == 503
        assert "The house's accounts cannot be reached." in text(away).replace("&#39;", "'")
    assert (await log_in(both.browser, "sup", PASSWORD)).status_code == 303


@pytest.mark.parametrize(
    ("where", "answer"),
    [
        ("discovery", Response(b"<html>", 200)),
        ("discovery", Response(b"\xff" * 9, 200)),
        ("discovery", Response(b"[" * 100_000, 200)),
        ("discovery", Response(b" " * (openid._LONGEST + 1), 200)),
        ("discovery", JSONResponse({"issuer": 7})),
        ("discovery", JSONResponse({}, 500)),
        ("discovery", RedirectResponse("http://127.0.0.1:1/")),
        ("keys", JSONResponse({"keys": {}})),
        ("keys", Response(b"", 204)),
        ("token", Response(b"", 502)),
        ("token", Response(b"no JSON")),
    ],
)
async def test_a_provider_that_talks_nonsense_is_away(both: Both, where: str, answer: Response) -> None:
    back = await both.there()
    both.provider.raw[where] = answer
    away = await both.browser.get(back)
    assert (away.status_code, both.who()) == (503, [])


async def test_a_provider_that_drips_is_away(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte is in time, and the places for those who come in are few."""

    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    monkeypatch.setattr(openid, "_TIMEOUT", 0.2)
    both.provider.raw["discovery"] = StreamingResponse(drip())
    async with asyncio.timeout(PATIENCE):
        away = await both.browser.get("/login/openid")
    assert away.status_code == 503


async def test_a_token_endpoint_that_refuses(both: Both, tmp_path: Path) -> None:
    both.provider.raw["token"] = JSONResponse({"token_type": "Bearer"})
    assert (await both.come_in()).status_code == 403
    del both.provider.raw["token"]
    secret = tmp_path / "secret"
    secret.write_text("wrong", encoding="utf-8")
    assert (await both.come_in()).status_code == 403
    secret.unlink()
    assert (await both.come_in()).status_code == 503


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
async def test_a_provider_that_is_another_is_not_gone_to(both: Both, metadata: dict[str, str]) -> None:
    both.provider.metadata = metadata
    answer = await both.browser.get("/login/openid")
    assert answer.status_code == 503
    assert "location" not in answer.headers


@pytest.mark.parametrize(("endpoint", "path"), [("token_endpoint", "/token"), ("jwks_uri", "/keys")])
@pytest.mark.parametrize(
    "url", ["http://localhost:{port}", "http://[", "file:///etc/passwd", "", "https://", "https://\0"]
)
async def test_nothing_is_asked_on_a_line_that_others_read(both: Both, endpoint: str, path: str, url: str) -> None:
    """Plain http only to this computer by its address: a name is whatever somebody says it is."""
    back = await both.there()
    both.provider.metadata = {endpoint: url.format(port=both.provider.port) + path}
    assert (await both.browser.get(back)).status_code == 503


async def test_too_many_at_once_wait_for_nobody(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openid, "_AT_ONCE", 0)
    assert (await both.browser.get("/login/openid")).status_code == 503


async def test_without_the_extra_it_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "authlib" else real(name))
    inn = Inn(tmp_path, '[console.openid]\nissuer = "https://id.example"\nclient = "c"\nsecret_file = "s"')
    async with inn.browser() as browser:
        for path in ("/login/openid", "/login/openid/done"):
            answer = await browser.get(path)
            assert answer.status_code in (403, 503)
        assert "make .venv/.openid" in text(await browser.get("/login/openid"))
        assert (await log_in(browser, "sup", PASSWORD)).status_code == 303
    inn.close()


async def test_without_an_issuer_there_is_nothing(tmp_path: Path) -> None:
    inn = Inn(tmp_path)
    async with inn.browser() as browser:
        assert (await browser.get("/login/openid")).status_code == 404
        assert "/login/openid" not in (await browser.get("/login")).text
    inn.close()
