"""Coming in by the pages: cookies, forms, throttling, tokens, and who may open what. Time is handed in."""

import asyncio
import contextlib
import csv
import io
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from console_inn import BY, NEW, NOON, ORIGIN, PASSWORD, Clock, Inn, cheap, log_in, post, text
from helpers import at_length
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.requests import Request

from daemon.console.auth import access as access_module
from daemon.console.auth.access import Throttle, Wait, inside, of_the_same_origin
from daemon.console.auth.users import ROLES, By, Hashed, Role, Users
from daemon.console.site.actions import read_actions
from daemon.words import words
from protocols.contract.documents import Alert


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real hashes are tested with the users."""
    monkeypatch.setattr("daemon.console.auth.access.hash_password", cheap)


@pytest.fixture
async def inn(tmp_path: Path) -> AsyncIterator[Inn]:
    one = Inn(tmp_path)
    yield one
    one.close()


def of(inn: Inn, secret: str) -> Request:
    """A stream's, with that cookie."""
    headers = [(b"accept", b"text/event-stream"), (b"cookie", f"{inn.access.cookie}={secret}".encode())]
    return Request({"type": "http", "headers": headers})


# ---- in and out


async def test_somebody_comes_in_and_goes_out(inn: Inn) -> None:
    async with inn.browser() as browser:
        assert (await browser.get("/users")).headers["location"] == "/login?to=/users"
        page = await browser.get("/login?to=/users")
        assert (page.status_code, 'name="to" value="/users"' in page.text) == (200, True)
        came = await log_in(browser, " Sup", to="/users")  # tablets write a capital first
        assert (came.status_code, came.headers["location"]) == (303, "/users")
        cookie = came.headers["set-cookie"]
        assert re.fullmatch(r"feltd=[\w-]{43}; HttpOnly; Path=/; SameSite=strict", cookie)
        assert (await browser.get("/users")).status_code == 200
        assert (await browser.get("/login")).headers["location"] == "/"
        stolen = dict(browser.cookies)
        out = await post(browser, "/logout")
        assert (out.status_code, out.headers["location"]) == (303, "/login")
        assert "feltd" not in browser.cookies
    async with inn.browser(stolen["feltd"]) as thief:
        assert (await thief.get("/users")).headers["location"] == "/login?to=/users"
    assert inn.said() == [("sup", "login", ""), ("sup", "session.end", "user:sup")]


async def test_behind_tls_the_cookie_is_for_this_host_and_no_plain_line(tmp_path: Path) -> None:
    inn = Inn(tmp_path, 'url = "https://console.lisboa"')
    async with inn.browser(base="http://127.0.0.1:8080") as browser:
        form = {"name": "sup", "password": PASSWORD}
        came = await browser.post("/login", data=form, headers={"origin": "https://console.lisboa"})
        pattern = r"__Host-feltd=[\w-]{43}; HttpOnly; Path=/; SameSite=strict; Secure"
        assert re.fullmatch(pattern, came.headers["set-cookie"])
    inn.close()


@pytest.mark.parametrize(
    ("name", "password"), [("sup", "wrong"), ("nobody", PASSWORD), ("", ""), ("sup\x00", "x" * 999)]
)
async def test_refused_login_does_not_say_which_part_was_wrong(inn: Inn, name: str, password: str) -> None:
    async with inn.browser() as browser:
        refused = await log_in(browser, name, password)
        assert refused.status_code == 403
        assert "Wrong name or password." in text(refused)
        assert "set-cookie" not in refused.headers
    assert [one[1] for one in inn.said()] == ["login.failed"]
    noted = read_actions(inn.journal.path, 1)[0].detail["name"]  # what is no name may be a password
    assert noted == (name if name == "sup" else "")
    assert password not in str(read_actions(inn.journal.path, 1)) or not password


async def test_an_unknown_user_takes_a_hash_as_long_as_a_known_one(inn: Inn, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = []
    real = Hashed.fits

    def fits(self: Hashed, password: str) -> bool:
        parameters.append((self.n, self.r, self.p))
        return real(self, password)

    monkeypatch.setattr(Hashed, "fits", fits)
    async with inn.browser() as browser:
        await log_in(browser, "nobody")
    assert parameters == [(2**15, 8, 1)]


async def test_new_login_ends_the_session_before(inn: Inn) -> None:
    first = inn.users.begin("tec", "", "")
    async with inn.browser(first) as browser:
        await log_in(browser, "sup")
        assert browser.cookies["feltd"] != first
    assert inn.users.session(first) is None


async def test_a_session_ends_by_itself(inn: Inn) -> None:
    async with inn.as_("viewer") as browser:
        inn.clock.on(minutes=29)
        assert (await browser.get("/account")).status_code == 200
        inn.clock.on(minutes=29)
        assert (await browser.get("/account")).status_code == 200
        inn.clock.on(minutes=30)
        assert (await browser.get("/account")).headers["location"] == "/login?to=/account"


async def test_a_stream_keeps_no_session_alive(inn: Inn) -> None:
    secret = inn.users.begin("vie", "", "")
    for _ in range(2):
        inn.clock.on(minutes=15)
        request = of(inn, secret)
        there = inn.clock.now < NOON + timedelta(minutes=30)
        assert (inn.house.context.user(request) is not None, inn.house.context.still(request)) == (there, there)
    assert not inn.house.context.still(of(inn, "nobody's"))


async def test_a_store_that_cannot_be_written_keeps_nobody_from_reading(inn: Inn) -> None:
    pages = ("/", "/alerts", "/table/bac-1", "/account", "/users", "/actions", "/support", "/login")
    async with inn.as_("supervisor") as browser:
        before = [(await browser.get(path)).status_code for path in pages]
        inn.store.db.execute("PRAGMA query_only=ON")
        for _ in range(4):
            inn.clock.on(minutes=20)
            assert [(await browser.get(path)).status_code for path in pages] == before
        inn.store.db.execute("PRAGMA query_only=OFF")
        assert [(await browser.get(path)).status_code for path in pages] == before
    assert before == [200] * 7 + [303]


@pytest.mark.parametrize("lang", words.LANGS)
async def test_action_that_cannot_be_journaled_is_refused(inn: Inn, lang: words.Lang) -> None:
    inn.house.incidents.begin(("bac-1", "x"), Alert(code="x", text="", remedy=""), inn.clock.now)
    secret = inn.users.begin("sup", "10.0.0.7", "browser")
    async with inn.browser(secret) as supervisor, inn.as_("administrator") as administrator:
        for browser in (supervisor, administrator):
            browser.headers["accept-language"] = lang
        inn.store.db.execute("PRAGMA query_only=ON")
        for path, form in (
            ("/login", {"name": "tec", "password": PASSWORD}),
            ("/logout", {}),
            ("/users", {"do": "remove", "name": "vie"}),
            ("/tokens", {"do": "add", "name": "wall", "role": "viewer"}),
            ("/alerts/silence", {"table": "bac-1", "minutes": "60", "why": "cleaning"}),
        ):
            answer = await post(administrator if path == "/users" else supervisor, path, **form)
            assert answer.status_code == 503, path
            assert words.catalog(lang)["site.unwritten"] in text(answer), path
            assert str(inn.store.path) not in answer.text
        assert {one.name for one in inn.users.all()} >= {"vie"}
        assert inn.users.tokens() == []
        assert inn.house.incidents.silences(inn.clock.now) == []


async def test_a_password_changed_while_it_was_checked_lets_nobody_in(
    inn: Inn, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = inn.access._in_thread

    async def slow(work: Any, *args: Any) -> Any:
        done = await real(work, *args)
        inn.users.set_password(BY, "sup", cheap(NEW))
        return done

    monkeypatch.setattr(inn.access, "_in_thread", slow)
    async with inn.browser() as browser:
        assert (await log_in(browser, "sup")).status_code == 403


@pytest.mark.parametrize(
    ("to", "where"),
    [
        ("/table/bac-1", "/table/bac-1"),
        ("", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/\nset-cookie:", "/"),
        ("javascript:alert(1)", "/"),
        ("/é", "/"),
    ],
)
async def test_the_way_after_the_login_stays_in_the_house(inn: Inn, to: str, where: str) -> None:
    assert inside(to) == where
    async with inn.browser() as browser:
        assert (await log_in(browser, "sup", to=to)).headers["location"] == where


async def test_a_dealer_without_a_page_begins_where_there_is_one(inn: Inn) -> None:
    """No table of theirs, or none at all, stands under [console.dealer]."""
    inn.users.add(BY, "eva", "dealer", ("bac-2",), cheap(PASSWORD))
    async with inn.browser() as browser:
        assert (await log_in(browser, "eva", to="/users")).headers["location"] == "/account"
        assert (await browser.get("/account")).status_code == 200


async def test_a_dealer_begins_at_the_table(tmp_path: Path) -> None:
    inn = Inn(tmp_path / "dealers", '[console.dealer]\nbac-2 = "/run/feltd/console/nbac-2.sock"')
    with contextlib.closing(inn):
        await _a_dealer_begins_at_the_table(inn)


async def _a_dealer_begins_at_the_table(inn: Inn) -> None:
    inn.users.add(BY, "eva", "dealer", ("bac-2",), cheap(PASSWORD))
    async with inn.browser() as browser:
        assert (await log_in(browser, "eva", to="/users")).headers["location"] == "/dealer/bac-2"
        assert (await log_in(browser, "eva", to="/dealer/bac-1")).headers["location"] == "/dealer/bac-1"
        assert (await browser.get("/users")).status_code == 403
        assert (await browser.get("/account")).status_code == 200


# ---- too many tries


async def test_tries_are_throttled_and_told(inn: Inn) -> None:
    async with inn.browser() as browser, inn.browser(address="10.0.0.8") as elsewhere:
        for _ in range(3):
            assert (await log_in(browser, "sup", "wrong")).status_code == 403
        waits = await log_in(browser, "sup")
        assert (waits.status_code, waits.headers["retry-after"]) == (429, "1")
        assert "Try again in 1 second." in text(waits)
        assert (await log_in(elsewhere, "sup")).status_code == 303
        inn.clock.on(seconds=1)
        assert (await log_in(browser, "sup")).status_code == 303
    failed = [one[1] for one in inn.said()]
    assert failed == ["login.failed"] * 3 + ["login.throttled", "login", "login"]


async def test_login_resets_the_count_of_failures(inn: Inn) -> None:
    async with inn.browser() as browser:
        for password in ("wrong", "wrong", PASSWORD) * 4:
            assert (await log_in(browser, "sup", password)).status_code == (303 if password == PASSWORD else 403)


async def test_a_flood_at_once_gets_no_more_tries(inn: Inn) -> None:
    async with inn.browser() as browser:
        answers = await asyncio.gather(*(log_in(browser, "sup", f"wrong {n}") for n in range(30)))
    codes = [answer.status_code for answer in answers]
    assert (codes.count(403), codes.count(429)) == (3, 27)


async def test_login_during_too_many_hashes_is_asked_to_retry(inn: Inn) -> None:
    inn.access._waiting = access_module._WAITING
    async with inn.browser() as browser:
        assert (await log_in(browser, "sup")).status_code == 429
    with pytest.raises(Wait):
        await inn.access.hash(NEW)
    inn.access._waiting = 0
    assert inn.access.throttle.begin("sup", "10.0.0.7") == 0


def test_each_wait_is_twice_the_one_before() -> None:
    clock, waits = Clock(), []
    throttle = Throttle(clock)
    for _ in range(16):
        wait = throttle.begin("ana", "10.0.0.7")
        waits.append(wait)
        clock.on(seconds=wait)
        if wait:
            assert throttle.begin("ana", "10.0.0.7") == 0
    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]
    clock.on(hours=1, seconds=1)
    assert [throttle.begin("ana", "10.0.0.7") for _ in range(4)] == [0, 0, 0, 1]


def test_an_address_that_tries_many_names_waits_and_a_name_elsewhere_no_minute() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    assert [throttle.begin(f"name-{n}", "2001:db8::1") for n in range(11)] == [0] * 10 + [1]
    assert throttle.begin("name-99", "2001:db8::ffff") == 1  # the same customer's
    assert throttle.begin("name-99", "2001:db8:1::1") == 0
    for n in range(40):  # a net of robots
        clock.on(seconds=60)
        assert throttle.begin("ana", f"10.0.0.{n}") == 0
    assert throttle.begin("ana", "10.1.0.1") == 60
    clock.now -= timedelta(days=1)
    assert throttle.begin("ana", "10.1.0.1") == 60


def test_a_success_forgets_the_name_and_not_what_the_address_tried_besides() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    for n in range(9):
        assert throttle.begin(f"name-{n}", "10.0.0.7") == 0
        assert throttle.begin("own", "10.0.0.7") == 0
        throttle.passed("own", "10.0.0.7")
    assert throttle.begin("name-9", "10.0.0.7") == 0
    assert throttle.begin("own", "10.0.0.7") == 1


@settings(max_examples=20)
@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=300))
def test_the_throttle_is_bounded(tries: list[tuple[str, str]]) -> None:
    throttle = Throttle(Clock())
    throttle.MOST = 10
    for name, address in tries:
        throttle.begin(name, address)
        throttle.struck(name, address)
        assert all(len(one) <= 10 for one in throttle._tries)


# ---- forms of others


@pytest.mark.parametrize(
    ("headers", "good"),
    [
        ({"origin": "http://pit.test"}, True),
        ({"origin": "http://PIT.test", "sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"origin": "https://pit.lisboa"}, True),
        ({}, False),
        ({"origin": "null"}, False),
        ({"origin": ""}, False),
        ({"origin": "http://pit.test.evil.example"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "http://pit.test", "sec-fetch-site": "cross-site"}, False),
        ({"origin": "http://pit.test", "sec-fetch-site": "same-site"}, False),
        ({"origin": "http://pit.test", "sec-fetch-site": "none"}, False),
        ({"origin": "http://evil.example", "sec-fetch-site": "same-origin"}, False),
        ({"origin": "http://pit.test:8081"}, False),
        ({"origin": "https://pit.test"}, False),
    ],
)
async def test_only_forms_of_the_same_origin(tmp_path: Path, headers: dict[str, str], good: bool) -> None:
    inn = Inn(tmp_path, 'url = "https://pit.lisboa/console"')
    async with inn.browser() as browser:
        answer = await browser.post("/login", data={"name": "sup", "password": PASSWORD}, headers=headers)
        assert answer.status_code == (303 if good else 403)
    assert (inn.users.sessions() != []) == good
    inn.close()


POSTS = ("/login", "/logout", "/account", "/users", "/tokens")


@pytest.mark.parametrize("path", POSTS)
async def test_every_form_asks_where_it_comes_from(inn: Inn, path: str) -> None:
    before = inn.said()
    async with inn.as_("supervisor") as browser:
        answer = await browser.post(path, data={"do": "end_all"}, headers={"origin": "http://evil.example"})
        assert answer.status_code == 403
    assert len(inn.users.sessions()) == 1
    assert inn.said() == before


@pytest.mark.parametrize("path", POSTS)
async def test_looking_at_the_head_of_a_page_changes_nothing(inn: Inn, path: str) -> None:
    before = inn.said()
    async with inn.as_("supervisor") as browser:
        answer = await browser.request("HEAD", path, headers=ORIGIN)
        assert answer.status_code == {"/login": 303, "/logout": 405}.get(path, 200)
    assert len(inn.users.sessions()) == 1
    assert inn.said() == before


def test_every_post_of_these_pages_is_among_them(inn: Inn) -> None:
    from daemon.console.pages.access import routes

    assert {one.path for one in routes(inn.house.context) if "POST" in (one.methods or ())} == set(POSTS)


def test_a_request_without_a_host_is_not_ours() -> None:
    scope = {"type": "http", "scheme": "http", "server": None, "path": "/", "headers": [(b"origin", b"http://")]}
    assert not of_the_same_origin(Request(scope))


# ---- who may open what


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_pages_by_role(inn: Inn, role: Role, method: str) -> None:
    may_open = {
        "/account": True,
        "/users": role in ("supervisor", "inspector", "administrator"),
        "/tokens": role in ("supervisor", "administrator"),
        "/actions": role in ("supervisor", "inspector", "administrator", "manager"),
        "/actions.csv": role in ("supervisor", "inspector", "administrator", "manager"),
    }
    async with inn.as_(role) as browser, inn.browser() as stranger:
        for path, good in may_open.items():
            if method == "GET":
                assert (await browser.get(path)).status_code == (200 if good else 403)
                assert (await stranger.get(path)).headers["location"] == f"/login?to={path}"
            elif not path.startswith("/actions"):
                manages = good and (path != "/users" or role == "administrator")
                assert (await post(browser, path, do="?")).status_code == (400 if manages else 403)
                assert (await post(stranger, path, do="end_all")).headers["location"] == f"/login?to={path}"
    assert len(inn.users.sessions()) == 1


@settings(
    max_examples=at_length(50, 1_000), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(cookie=st.binary(max_size=300))
async def test_no_cookie_lets_anybody_in(inn: Inn, cookie: bytes) -> None:
    header = cookie.replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")
    for raw in (header, b"feltd=" + header, b'feltd="' + header + b'"'):
        headers = [(b"cookie", raw), (b"authorization", b"Bearer " + raw)]
        request = Request({"type": "http", "headers": headers})
        assert inn.access.who(request) is None
        assert not inn.access.may_scrape(request)


# ---- the own account


async def test_the_own_password(inn: Inn) -> None:
    other = inn.users.begin("tec", "10.0.0.9", "phone")
    async with inn.as_("technician") as browser:
        before = browser.cookies["feltd"]
        old = {"do": "password", "old": PASSWORD}
        for form, code, said in (
            ({**old, "password": "short", "again": "short"}, 400, "at least 12"),
            ({**old, "password": "x-tec-and-more", "again": "x-tec-and-more"}, 400, "does not contain the name"),
            ({**old, "password": NEW, "again": NEW + "x"}, 400, "differ"),
            ({**old, "password": NEW, "again": NEW, "old": "wrong"}, 403, "not the present password"),
        ):
            answer = await post(browser, "/account", **form)
            assert (answer.status_code, said in text(answer)) == (code, True)
        answer = await post(browser, "/account", **old, password=NEW, again=NEW)
        assert (answer.status_code, answer.headers["location"]) == (303, "/account?done=password_set")
        assert "The password was changed." in text(await browser.get("/account?done=password_set"))
        assert browser.cookies["feltd"] != before
    assert inn.users.session(before) is inn.users.session(other) is None
    async with inn.browser(address="10.0.0.8") as browser:
        assert (await log_in(browser, "tec")).status_code == 403
        assert (await log_in(browser, "tec", NEW)).status_code == 303


async def test_form_of_an_ended_session_changes_nothing(inn: Inn, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(password: str) -> Hashed:
        inn.users.end(BY)
        return cheap(password)

    monkeypatch.setattr(inn.access, "hash", slow)
    async with inn.as_("supervisor") as browser:
        form = {"do": "password", "password": NEW, "again": NEW}
        assert (await post(browser, "/account", **form, old=PASSWORD)).status_code == 403
    async with inn.as_("supervisor") as browser:
        assert (await post(browser, "/users", **form, name="tec")).status_code == 403
    async with inn.as_("supervisor") as browser:
        assert (await post(browser, "/users", **{**form, "do": "add"}, name="eva", role="viewer")).status_code == 403
    assert inn.users.hashed("sup") == inn.users.hashed("tec") == cheap(PASSWORD)
    assert inn.users.hashed("eva") is None


@pytest.mark.parametrize("how", ["ended", "role", "removed"])
async def test_form_after_a_lost_right_changes_nothing(inn: Inn, how: str) -> None:
    """A form may take ten seconds; it was asked who sends it before the first byte."""
    inn.users.add(BY, "eva", "supervisor", (), cheap(PASSWORD))
    secret = inn.users.begin("eva", "", "")

    async def slowly() -> AsyncIterator[bytes]:
        yield b"do=add&name=wall-1&"
        match how:
            case "ended":
                inn.users.end(BY, user="eva")
            case "role":
                inn.users.set_role(BY, "eva", "viewer", ())
            case _:
                inn.users.remove(BY, "eva")
        yield b"role=viewer&tables="

    async with inn.browser(secret) as browser:
        answer = await browser.post("/tokens", content=slowly(), headers=ORIGIN)
        assert answer.status_code == 403
        assert "eva" not in answer.text  # the page is a stranger's
    assert inn.users.tokens() == []


async def test_login_survives_a_session_that_ends_meanwhile(inn: Inn) -> None:
    secret = inn.users.begin("sup", "", "")

    async def slowly() -> AsyncIterator[bytes]:
        yield b"name=sup&"
        inn.users.end(BY)
        yield f"password={PASSWORD.replace(' ', '+')}".encode()

    async with inn.browser(secret) as browser:
        assert (await browser.post("/login", content=slowly(), headers=ORIGIN)).status_code == 303


@pytest.mark.parametrize("page", ["access_tokens", "access_users"])
def test_a_form_that_is_sent_twice_is_sent_once(page: str) -> None:
    text = (Path(words.__file__).parents[1] / "console/templates" / f"{page}.html").read_text(encoding="utf-8")
    forms = re.findall(r'<form [^>]*method="post"[^>]*>', text)
    assert forms
    assert [one for one in forms if "data-once" not in one] == []


async def test_the_page_of_the_account_does_not_send_people_to_itself(inn: Inn) -> None:
    async with inn.as_("supervisor") as browser:
        page = text(await browser.get("/account"))
    assert words.say("en", "access.needs_factor") not in page
    assert words.say("en", "access.factor_hint") in page


async def test_own_sessions_and_nobody_elses(inn: Inn) -> None:
    mine, his = inn.users.begin("tec", "10.9.9.9", "phone"), inn.users.begin("sup", "10.8.8.8", "x")
    async with inn.as_("technician") as browser:
        page = text(await browser.get("/account"))
        assert "10.9.9.9" in page
        assert "10.8.8.8" not in page
        sessions = {secret: inn.users.session(secret) for secret in (mine, his)}
        for session in sessions.values():
            assert session is not None
            ended = await post(browser, "/account", do="end", session=session.id)
            assert ended.headers["location"] == "/account?done=sessions_ended"
        await post(browser, "/account", do="end", session="no hex")
        assert inn.users.session(mine) is None
        assert inn.users.session(his) is not None
        own = inn.users.session(browser.cookies["feltd"])
        assert own is not None
        assert (await post(browser, "/account", do="end", session=own.id)).headers["location"] == "/login"


async def test_somebody_whom_another_provider_knows_has_no_password_here(inn: Inn) -> None:
    async with inn.browser(inn.users.begin("openid:ana", "", "", "technician")) as browser:
        assert 'name="password"' not in (await browser.get("/account")).text
        form = {"do": "password", "old": PASSWORD, "password": NEW, "again": NEW}
        assert (await post(browser, "/account", **form)).status_code == 400


async def test_a_page_says_only_its_own_words(inn: Inn) -> None:
    async with inn.as_("viewer") as browser:
        assert "Send your password" not in (await browser.get("/account?done=Send+your+password")).text
        assert 'role="status"' not in (await browser.get("/account?done=refused")).text


# ---- users and tokens


async def test_a_administrator_keeps_the_users(inn: Inn) -> None:
    async with inn.as_("administrator") as browser:

        async def do(what: str, code: int = 303, /, **form: str) -> str:
            answer = await post(browser, "/users", do=what, **form)
            assert answer.status_code == code
            return answer.headers["location"] if code == 303 else text(answer)

        new = {"password": NEW, "again": NEW}
        assert await do("add", name="eva", role="dealer", tables="bac-1, bac-2", **new) == "/users?done=user_added"
        assert "There is a user of that name already." in await do("add", 400, name="eva", role="viewer", **new)
        assert "One of these tables" in await do("add", 400, name="joe", role="viewer", tables="bac-9", **new)
        assert "A name is small letters" in await do("add", 400, name="Eva Maria", role="viewer", **new)
        await do("add", 400, name="joe", role="owner", **new)
        assert "no user of that name" in await do("password", 400, name="joe", **new)
        eva = inn.users.begin("eva", "", "")
        assert await do("role", name="eva", role="technician", tables="") == "/users?done=role_set"
        assert inn.users.session(eva) is None
        eva = inn.users.begin("eva", "", "")
        await do("password", name="eva", password=PASSWORD, again=PASSWORD)
        assert inn.users.session(eva) is None
        eva = inn.users.begin("eva", "", "")
        await do("end", name="eva")
        assert inn.users.session(eva) is None
        assert await do("remove", name="eva") == "/users?done=user_removed"
        assert "the last administrator" in await do("remove", 400, name="adm")
        assert "the last administrator" in await do("role", 400, name="adm", role="viewer")
        inn.users.begin("tec", "", "")
        await do("end_all")
        assert inn.users.sessions() == []
        assert (await browser.get("/users")).status_code == 303
    assert [one[1:] for one in inn.said()] == [
        ("user.add", "user:eva"),
        ("user.role", "user:eva"),
        ("user.password", "user:eva"),
        ("session.end", "user:eva"),
        ("user.remove", "user:eva"),
        ("session.end", ""),
    ]
    assert NEW not in str(read_actions(inn.journal.path, 100))


async def test_a_screen_on_the_wall(inn: Inn) -> None:
    async with inn.as_("supervisor") as browser:
        page = await post(browser, "/tokens", do="add", name="wall-1", role="viewer", tables="bac-1")
        found = re.search(r"http://pit.test/wall\?token=([\w-]{43})", page.text)
        assert found
        assert found[1] not in (await browser.get("/tokens")).text
        for form, code in ((("wall-1", "viewer", ""), 400), (("w", "root", ""), 400), (("w", "viewer", "bac-9"), 400)):
            name, role, tables = form
            answer = await post(browser, "/tokens", do="add", name=name, role=role, tables=tables)
            assert answer.status_code == code
        async with inn.browser() as wall:
            came = await wall.get(found[0])
            assert (came.status_code, came.headers["location"]) == (303, "/wall")
            assert (await wall.get("/wall")).status_code == 200
            assert re.search(r"HttpOnly; Max-Age=31536000; Path=/; SameSite=strict", came.headers["set-cookie"])
            inn.clock.on(days=300)  # a screen stays
            assert (await wall.get("/")).status_code == 200
            assert [(await wall.get(path)).status_code for path in ("/users", "/account", "/actions")] == [403] * 3
            assert (await post(wall, "/account", do="end")).status_code == 403
            request = of(inn, found[1])
            assert inn.house.context.still(request)
            inn.users.remove_token(BY, "wall-1")
            assert not inn.house.context.still(request)
            inn.users.add_token(BY, "wall-1", "viewer", ("bac-1",))
            assert not inn.house.context.still(
                request
            )  # another screen of that name: who found the first one stays out
            assert (await wall.get("/")).headers["location"] == "/login?to=/"
            assert (await wall.get(found[0])).headers["location"] == "/login"


async def test_a_token_of_metrics_opens_metrics_alone(inn: Inn) -> None:
    metrics = inn.users.add_token(BY, "prometheus", "metrics")
    wall, part = inn.users.add_token(BY, "wall", "viewer"), inn.users.add_token(BY, "part", "viewer", ("bac-1",))

    def scrapes(authorization: str = "", cookie: str = "") -> bool:
        headers = [(b"authorization", authorization.encode()), (b"cookie", f"feltd={cookie}".encode())]
        return inn.access.may_scrape(Request({"type": "http", "headers": headers}))

    assert scrapes(f"Bearer {metrics}")
    assert scrapes(f"bearer  {wall} ")
    assert scrapes(cookie=inn.users.begin("tec", "", ""))
    assert scrapes(cookie=wall)
    assert not scrapes(f"Basic {metrics}")
    assert not scrapes(f"Bearer {part}")
    assert not scrapes(cookie=part)
    assert not scrapes(cookie=metrics)
    assert not scrapes(cookie=inn.users.begin("dea", "", ""))
    assert not scrapes("Bearer ")
    assert not scrapes()
    async with inn.browser(metrics) as browser:
        assert (await browser.get("/")).headers["location"] == "/login?to=/"
        assert (await browser.get(f"/wall?token={metrics}")).headers["location"] == "/login"


async def test_open_metrics_ask_nobody(tmp_path: Path) -> None:
    inn = Inn(tmp_path, 'metrics = "open"')
    assert inn.access.may_scrape(Request({"type": "http", "headers": []}))
    inn.close()


# ---- the log of actions


async def test_the_log_of_actions(inn: Inn) -> None:
    for n in range(205):
        inn.clock.on(minutes=1)
        inn.house.actions.note("tec", "technician", "command", "bac-1/shoe", {"n": n})
    inn.house.actions.note("sup", "supervisor", "silence", "bac-2", {"why": "<b>=1"})
    async with inn.as_("inspector") as browser:
        page = await browser.get("/actions?table=bac-1&user=&action=command")
        assert page.text.count("<tr>") == 101
        older = re.search(r'href="(/actions\?[^"]*before=\d+)"', page.text)
        assert older
        page = await browser.get(older[1].replace("&amp;", "&"))
        assert "{&#34;n&#34;:104}" in page.text
        assert "{&#34;n&#34;:105}" not in page.text
        page = await browser.get("/actions?action=silence")
        assert "&lt;b&gt;=1" in page.text
        assert text(await browser.get("/actions?from=2026-11-21")).endswith("No entries.")
        for wrong in ("from=yesterday", "to=9999-12-31"):
            assert (await browser.get(f"/actions?{wrong}")).status_code == 400
        for wrong in ("before=x", "before=²", "before=" + "9" * 99, "user=%ff%00", "table=%27"):
            assert (await browser.get(f"/actions?{wrong}")).status_code == 200
        got = await browser.get("/actions.csv?table=bac-1")
        assert got.text.startswith("\ufeff")  # by which spreadsheets know UTF-8, as in the other exports
        rows = list(csv.reader(io.StringIO(got.text[1:])))
        assert (got.headers["content-type"], len(rows)) == ("text/csv; charset=utf-8", 206)
        assert rows[0] == ["n", "time", "user", "role", "action", "target", "detail"]
        assert rows[1][2:] == ["tec", "technician", "command", "bac-1/shoe", '{"n":204}']
    assert inn.said()[-1] == ("ins", "actions.export", "")


async def test_journal_of_actions_shows_command_line_actions_at_once(inn: Inn) -> None:
    beside = Users(inn.store, inn.clock)
    beside.add_token(By("root", "system"), "wall", "viewer")
    async with inn.as_("inspector") as browser:
        assert "token:wall" in text(await browser.get("/actions"))


async def test_a_long_log_comes_in_pages(inn: Inn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daemon.console.pages.access._CSV_PAGE", 3)
    for name in ("\uff1dcmd()", "\n=1", "=cmd()", "+1", "-1", "@x", "plain", "ana", "rui"):
        inn.house.actions.note(name, "", "login", "", {})
    async with inn.as_("inspector") as browser:
        got = await browser.get("/actions.csv?action=login")
    users = [row[2] for row in csv.reader(io.StringIO(got.text))][1:]
    assert users == ["rui", "ana", "plain", "'@x", "'-1", "'+1", "'=cmd()", "'\n=1", "'\uff1dcmd()"]


async def test_a_link_to_the_wall_replaces_no_sign_in(inn: Inn) -> None:
    """Neither from another site, whose requests come without our cookie, nor for one who is signed in."""
    wall = inn.users.add_token(BY, "wall", "viewer")
    async with inn.browser() as browser:
        got = await browser.get(f"/wall?token={wall}", headers={"sec-fetch-site": "cross-site"})
        assert (got.status_code, "set-cookie" in got.headers) == (403, False)
        got = await browser.get(f"/wall?token={wall}", headers={"sec-fetch-site": "none"})
        assert (got.status_code, "set-cookie" in got.headers) == (303, True)
    async with inn.as_("supervisor") as browser:
        got = await browser.get(f"/wall?token={wall}")
        assert (got.headers["location"], "set-cookie" in got.headers) == ("/wall", False)


# ---- a plain line


@pytest.mark.parametrize(
    ("console", "warned"),
    [
        ('listen = "0.0.0.0"\ninsecure = true', True),
        ('listen = "pit.lisboa"\ninsecure = true', True),
        ('listen = "::1"', False),
        ('listen = "localhost"', False),
        ('listen = "0.0.0.0"\nurl = "https://pit.lisboa"\ninsecure = true', False),
        ('listen = "0.0.0.0"\ncertificate = "c"\nkey = "k"', False),
    ],
)
async def test_passwords_in_the_clear_are_warned_of(tmp_path: Path, console: str, warned: bool) -> None:
    with structlog.testing.capture_logs() as logged:
        Inn(tmp_path, console).close()
    assert ("console.plain" in [one["event"] for one in logged]) == warned


# ---- three languages


@pytest.mark.parametrize("lang", words.LANGS)
async def test_the_pages_in_three_languages(inn: Inn, lang: words.Lang) -> None:
    inn.users.add_token(BY, "wall", "viewer")
    async with inn.as_("administrator") as browser, inn.browser() as stranger:
        headers = {"accept-language": lang}
        for path, key in (
            ("/account", "change_password"),
            ("/users", "end_all_hint"),
            ("/tokens", "add_token"),
            ("/actions", "log"),
        ):
            page = await browser.get(path, headers=headers)
            assert words.catalog(lang)[f"access.{key}"] in page.text.replace("&#39;", "'")
            assert "access." not in text(page)
        page = await stranger.get("/login", headers=headers)
        assert words.catalog(lang)["access.enter"] in page.text


def test_every_word_is_there_in_three_languages_with_the_same_places() -> None:
    texts = [
        {key: re.findall(r"\{\w*\}", one) for key, one in words.catalog(lang).items() if key.startswith("access.")}
        for lang in words.LANGS
    ]
    assert texts[0] == texts[1] == texts[2]
    folder = Path(access_module.__file__).parents[1]
    used = set()
    code = (
        folder / name
        for name in ("context.py", "pages/access.py", "auth/users.py", "auth/access.py", "pages/openid.py")
    )
    for file in (*folder.glob("templates/access_*.html"), *code):
        used |= set(re.findall(r'["\'](access\.[a-z_]+)["\']', file.read_text(encoding="utf-8")))
    made = {"access.token_viewer", "access.token_metrics", *(f"access.{word}" for word in _done())}
    assert {one for one in used if not one.endswith("_")} | made == set(texts[0])


def _done() -> tuple[str, ...]:
    from daemon.console.pages.access import _DONE

    return _DONE


async def test_a_refused_new_user_keeps_what_was_typed_but_for_passwords(inn: Inn) -> None:
    typed = {"do": "add", "name": "rui", "role": "technician", "tables": "bac-1, bac-2"}
    async with inn.as_("administrator") as browser:
        page = await post(browser, "/users", **typed, password=PASSWORD, again=NEW)
    assert page.status_code == 400
    form = page.text.partition('id="add"')[2].partition("</form>")[0]
    assert "The two passwords differ." in form
    assert 'name="name" value="rui"' in form
    assert '<option value="technician" selected>' in form
    assert 'name="tables" value="bac-1, bac-2"' in form
    assert PASSWORD not in page.text
