"""Somebody on the floor's network, or a curious dealer: what they try at the console's pages."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from console_floor import Console, opened
from console_tour import ask

from daemon.console import live as live_module
from daemon.console.access import User
from daemon.console.live import Looker
from daemon.console.users import By

BY = By("root", "system")


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with opened(tmp_path) as one:
        one.connect()
        yield one


def cookie(console: Console, role: str = "viewer") -> list[tuple[str, str]]:
    secret = console.house.access.users.begin(f"{role}@lisboa", "10.0.0.7", "test", outside=role)
    return [("cookie", f"feltd={secret}"), ("accept-language", "en")]


# ---- memory


@pytest.mark.parametrize("name", ["top/x", "edges/x", "alerts/x", "tile/x", "device/bac-12", "device/x/y", "x", ""])
def test_a_fragment_that_is_none_is_not_kept(console: Console, name: str) -> None:
    looker = Looker("en", "viewer")
    with pytest.raises(KeyError):
        console.house.live.html(name, looker)
    assert (name, looker) not in console.house.live._rendered


async def test_one_who_opens_many_pages_leaves_room_for_others(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "MOST_OF_ONE", 3)
    greedy, other = cookie(console), cookie(console, "technician")
    [whom] = [one.id for one in console.house.access.users.sessions("viewer@lisboa")]
    live = console.house.live
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            assert (await ask(console.app, "/live?f=top", headers=greedy)).status == 200
            looking = live.follow({}, Looker("en", "viewer"), lambda: True, whom)
            stack.push_async_callback(looking.aclose)  # type: ignore[attr-defined]
            await anext(looking)
        assert (await ask(console.app, "/live?f=top", headers=greedy)).status == 503
        assert (await ask(console.app, "/live?f=top", headers=other)).status == 200
    assert (await ask(console.app, "/live?f=top", headers=greedy)).status == 200


async def test_a_token_of_the_same_name_for_other_tables_is_another(console: Console) -> None:
    users = console.house.access.users
    secret = users.add_token(BY, "wall", "viewer", ("bac-12",))
    token = users.token(secret)
    assert token is not None
    user = User("wall", "viewer", token.tables, "token", "wall")
    assert console.house.access.goes_on(user)
    users.remove_token(BY, "wall")
    users.add_token(BY, "wall", "viewer", ("rou-3",))
    assert not console.house.access.goes_on(user)


@pytest.mark.parametrize("number", ["9" * 25, "9" * 5000, "0"])
@pytest.mark.parametrize("path", ["/alerts/{}/acknowledge", "/alerts/{}/close", "/alerts/silence/{}/end"])
async def test_a_number_beyond_all_bounds_is_nobodys(console: Console, path: str, number: str) -> None:
    ours = [("origin", "http://pit.test"), *cookie(console, "supervisor")]
    said = await ask(console.app, path.format(number), "POST", ours)
    assert said.status in (303, 404, 409)
