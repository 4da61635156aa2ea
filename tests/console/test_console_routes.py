"""Who gets what from every path of the console: a new one without a decision here fails."""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from console_floor import Console, opened
from console_pools import pool_house
from console_tour import Said, ask, pages, streams
from starlette.routing import Mount, Route

from daemon.console.auth.users import ROLES, By, Hashed, _scrypt
from daemon.journal.store import Journal

DEALER = '[console.dealer]\nbac-12 = "/run/feltd/console/nbac-12.sock"\nrou-3 = "/run/feltd/console/nrou-3.sock"'
OURS = [("origin", "http://pit.test"), ("sec-fetch-site", "same-origin"), ("accept-language", "en")]
TABLES = ("bac-12", "shoe-1"), ("rou-3", "wheel-1")
LIMITED = ("screen", "technician of bac-12", "dealer of bac-12")
BY = By("root", "system")
PASSWORD = "twelve chars and more"
# By method and path: what nobody gets, then viewer, dealer, technician, supervisor, inspector, administrator, manager;
# then of whom is kept to the table bac-12 a screen, a technician and a dealer, each of that table and of another one.
# "login": there first.
DECIDED: dict[str, str] = {
    "GET /": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /table/{table}": "login 200 403 200 200 200 200 200 200 403 200 403 403 403",
    "GET /table/{table}/labels": "login 200 403 200 200 200 200 200 200 403 200 403 403 403",
    "POST /table/{table}/decide/{key}": "login 403 403 403 404 403 403 403 403 403 403 403 403 403",
    "GET /table/{table}/round/{round:path}": "login 404 403 404 404 404 404 404 404 403 404 403 403 403",
    "GET /table/{table}/device/{device}": "login 200 403 200 200 200 200 200 200 403 200 403 403 403",
    "POST /table/{table}/device/{device}/command/{command}": "login 403 403 404 404 403 403 403 403 403 404 403 403 403",  # noqa: E501
    "POST /preferences": "303 303 303 303 303 303 303 303 303 303 303 303 303 303",
    "GET /live": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /login": "200 303 303 303 303 303 303 303 200 200 303 303 303 303",
    "POST /login": "403 403 403 403 403 403 403 403 403 403 403 403 403 403",
    "POST /logout": "login login login login login login login login login login login login login login",
    "GET /wall": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /fleet": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /tables": "login 403 403 200 200 403 403 403 403 403 403 403 403 403",
    "GET /tables/draft/{id}": "login 403 403 404 404 403 403 403 403 403 403 403 403 403",
    "POST /tables/draft/{id}": "login 403 403 404 404 403 403 403 403 403 403 403 403 403",
    "GET /tables/{act}": "login 403 403 404 404 403 403 403 403 403 403 403 403 403",
    "POST /tables/{act}": "login 403 403 404 404 403 403 403 403 403 403 403 403 403",
    "GET /account": "login 200 200 200 200 200 200 200 403 403 200 200 200 200",
    "POST /account": "login 400 400 400 400 400 400 400 403 403 400 400 400 400",
    "GET /users": "login 403 403 403 200 200 200 403 403 403 403 403 403 403",
    "POST /users": "login 403 403 403 403 403 400 403 403 403 403 403 403 403",
    "GET /tokens": "login 403 403 403 200 403 200 403 403 403 403 403 403 403",
    "POST /tokens": "login 403 403 403 400 403 400 403 403 403 403 403 403 403",
    "GET /actions": "login 403 403 403 200 200 200 200 403 403 403 403 403 403",
    "GET /actions.csv": "login 403 403 403 200 200 200 200 403 403 403 403 403 403",
    "GET /table/{table}/device/{device}/trace": "login 403 403 200 200 200 403 403 403 403 200 403 403 403",
    "POST /table/{table}/device/{device}/trace": "login 403 403 400 400 400 403 403 403 403 400 403 403 403",
    "GET /table/{table}/device/{device}/trace/stream": "login 403 403 200 200 200 403 403 403 403 200 403 403 403",
    "GET /table/{table}/device/{device}/trace/text": "login 403 403 200 200 200 403 403 403 403 200 403 403 403",
    "GET /support": "login 403 403 200 200 403 403 403 403 403 200 200 403 403",
    "GET /bundle": "login 403 403 404 404 403 403 403 403 403 403 403 403 403",
    "POST /bundle": "login 403 403 303 303 403 403 403 403 403 403 403 403 403",
    "POST /bundle/cancel": "login 403 403 303 303 403 403 403 403 403 403 403 403 403",
    "GET /dealer": "login 403 303 403 303 403 403 403 403 403 403 403 303 303",
    "GET /dealer/{table}": "login 403 200 403 200 403 403 403 403 403 403 403 200 403",
    "POST /dealer/{table}/key/{key}": "login 403 303 403 303 403 403 403 403 403 403 403 303 403",
    "GET /dealer/{table}/stream": "login 403 200 403 200 403 403 403 403 403 403 403 200 403",
    "GET /jackpots": "login 403 403 403 200 200 403 403 403 403 403 403 403 403",
    "GET /jackpots/{pool}": "login 403 403 403 200 200 403 403 403 403 403 403 403 403",
    "GET /jackpots/{pool}/entries": "login 403 403 403 200 200 403 403 403 403 403 403 403 403",
    "GET /jackpots/{pool}/books.csv": "login 403 403 403 403 200 403 403 403 403 403 403 403 403",
    "GET /jackpots/{pool}/wins": "login 403 403 403 200 200 403 403 403 403 403 403 403 403",
    "POST /jackpots/{pool}/order/{order}": "login 403 403 403 400 403 403 403 403 403 403 403 403 403",
    "GET /floor": "login 403 403 403 200 200 403 200 403 403 403 403 403 403",
    "GET /floor.csv": "login 403 403 403 200 200 403 200 403 403 403 403 403 403",
    "GET /reports": "login 403 403 403 200 200 403 200 403 403 403 403 403 403",
    "GET /reports.csv": "login 403 403 403 303 303 403 303 403 403 403 403 403 403",
    "GET /floor/{table}": "login 403 200 403 200 200 403 200 403 403 403 403 200 403",
    "POST /floor/{table}/sign/{act}": "login 403 403 403 404 403 403 404 403 403 403 403 403 403",
    "POST /floor/{table}/count": "login 403 400 403 400 403 403 403 403 403 403 403 400 403",
    "POST /floor/{table}/count/{id}/{act}": "login 403 404 403 404 403 403 403 403 403 403 403 404 403",
    "GET /favicon.ico": "200 200 200 200 200 200 200 200 200 200 200 200 200 200",
    "GET /alerts": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /alerts.csv": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /alerts/report": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /alerts/report.csv": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /alerts/report.json": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /devices": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /devices.csv": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /rounds": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /table/{table}/rounds": "login 200 403 200 200 200 200 200 200 403 200 403 403 403",
    "GET /table/{table}/rounds.{kind}": "login 403 403 403 403 200 403 403 403 403 403 403 403 403",
    "GET /table/{table}/report/{kind}/{round:path}": "login 403 403 403 403 404 403 403 403 403 403 403 403 403",
    "GET /law": "login 200 403 200 200 200 200 200 200 200 200 200 403 403",
    "GET /law/{ruleset}": "login 404 403 404 404 404 404 404 404 404 404 404 403 403",
    "POST /alerts/silence": "login 403 403 403 409 403 403 403 403 403 403 403 403 403",
    "POST /alerts/silence/{n}/end": "login 403 403 403 303 403 403 403 403 403 403 403 403 403",
    "POST /alerts/{n}/acknowledge": "login 403 403 409 409 403 403 403 403 403 409 403 403 403",
    "POST /alerts/{n}/step/{step}": "login 403 403 409 409 403 403 403 403 403 409 403 403 403",
    "POST /alerts/{n}/silence": "login 403 403 409 409 403 403 403 403 403 409 403 403 403",
    "POST /alerts/{n}/close": "login 403 403 403 409 403 403 403 403 403 403 403 403 403",
    "GET /table/{table}/fairness": "login 200 403 200 200 200 200 200 200 403 200 403 403 403",
    "POST /table/{table}/fairness": "login 403 403 400 400 403 403 403 403 403 400 403 403 403",
    "GET /metrics": "401 200 401 200 200 200 200 200 401 401 401 401 401 401",
    "GET /healthz": "200 200 200 200 200 200 200 200 200 200 200 200 200 200",
    "GET /readyz": "503 503 503 503 503 503 503 503 503 503 503 503 503 503",
    "GET /static/{path:path}": "404 404 404 404 404 404 404 404 404 404 404 404 404 404",
}


class Floor:
    """A console of two tables with an alert and a silence on each, and somebody of each kind."""

    def __init__(self, console: Console, folder: Path) -> None:
        self.console = console
        house = console.house
        console.connect()
        for name in ("edge.db", "rules.db"):
            Journal(folder / name).close()
        users = house.access.users
        hashed = Hashed(2, 8, 1, b"salt", _scrypt(PASSWORD, 2, 8, 1, b"salt"))
        self.secrets = {"nobody": ""}
        for role in ROLES:
            self.secrets[role] = users.begin(f"{role}@lisboa", "10.0.0.7", "test", outside=role)
        self.secrets["screen"] = users.add_token(BY, "screen", "viewer", ("bac-12",))
        for role in ("technician", "dealer"):
            users.add(BY, role, role, ("bac-12",), hashed)
            self.secrets[f"{role} of bac-12"] = users.begin(role, "10.0.0.7", "test")
        until = house.now() + timedelta(hours=1)
        self.numbers: dict[str, tuple[int, int]] = {}
        for table, device in TABLES:
            console.device(table, device, {"shoe-1": "bee_tek_shoe", "wheel-1": "cammegh_ss2"}[device])
            said = f"text-of-{table}"
            console.alert(table, f"jam-{device}", code=f"code.{device}", device=device, text=said, remedy=said)
            house.incidents.silence(table, device, "other", until, "sam", "because", house.now())
        console.wait(1)
        for table, _ in TABLES:
            [shown] = house.incidents.open(house.now(), table)
            [silence] = [one for one in house.incidents.silences(house.now()) if one.table == table]
            self.numbers[table] = shown.incident.n, silence.n

    def path(self, route: str, table: str, device: str) -> str:
        number = self.numbers[table]["silence/{" in route]
        named = route.replace("{n}", str(number)).replace("{table}", table).replace("{device}", device)
        given = {
            "{pool}": {"bac-12": "red", "rou-3": "blue"}[table],
            "{order}": "nothing",
            "{command}": "nothing",
            "{key}": "bell",
            "{step}": "on_way",
            "{round:path}": "no/such/round",
            "{kind}": "json",
        }
        for name, value in given.items():
            named = named.replace(name, value)
        return named

    async def ask(self, who: str, method: str, path: str) -> Said:
        """As somebody; a form says nothing that its page knows."""
        cookie = [("cookie", f"feltd={self.secrets[who]}")]
        return await ask(self.console.app, path, method, [*OURS, *cookie], b"none=of+it" if method == "POST" else b"")


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Floor]:
    with opened(tmp_path, DEALER) as console, pool_house(console, tmp_path, alive=False):
        yield Floor(console, tmp_path)


def asked(console: Console) -> list[str]:
    """Every method and path; HEAD is GET without a body."""
    found = []
    for route in console.app.routes:
        match route:
            case Mount(path=path):
                found.append(f"GET {path}/{{path:path}}")
            case Route(path=path, methods=methods):
                found += [f"{method} {path}" for method in sorted(methods or ()) if method != "HEAD"]
            case _:
                raise AssertionError(route)
    return found


def test_each_path_was_decided(floor: Floor) -> None:
    assert sorted(asked(floor.console)) == sorted(DECIDED)


@pytest.mark.parametrize("asked_for", DECIDED)
async def test_routes_by_role(tmp_path: Path, asked_for: str) -> None:
    method, _, route = asked_for.partition(" ")
    people = [(who, TABLES[0]) for who in ("nobody", *ROLES)] + [(who, where) for who in LIMITED for where in TABLES]
    got = []
    with contextlib.ExitStack() as rooms:
        for n, (who, where) in enumerate(people):
            if n == 0 or method != "GET":  # what one does is not there for the next; who only looks does nothing
                rooms.close()
                (folder := tmp_path / str(n)).mkdir()
                console = rooms.enter_context(opened(folder, DEALER))
                rooms.enter_context(pool_house(console, folder, alive=False))
                floor = Floor(console, folder)
            said = await floor.ask(who, method, floor.path(route, *where))
            to_login = dict(said.headers).get(b"location", b"").startswith(b"/login")
            got.append("login" if to_login else str(said.status))
    assert " ".join(got) == " ".join(DECIDED[asked_for].split())


@pytest.mark.parametrize("who", LIMITED)
async def test_viewer_of_one_table_receives_nothing_of_another(floor: Floor, who: str) -> None:
    house = floor.console.house
    shown = 0
    for path in [*pages(house), *streams(house), "/alerts?table=rou-3", "/alerts.csv?table=rou-3&device=wheel-1"]:
        said = await floor.ask(who, "GET", path)
        for mark in ("rou-3", "wheel-1", "text-of-rou-3"):
            echoed = mark in path  # what was asked for may be said again: in the form of a filter
            assert echoed or mark.encode() not in said.body, (path, mark)
        assert b"text-of-rou-3" not in said.body, path
        shown += b"bac-12" in said.body
    assert shown > 2
