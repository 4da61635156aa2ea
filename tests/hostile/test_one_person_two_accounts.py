"""One person who manages accounts, or has a colleague's password, and wants to be the second person, too."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pyotp
import pytest
from click.testing import CliRunner
from console_floor import Console
from console_inn import cheap
from console_pools import CONFIG, PoolHouse, pair, pool_house

from daemon.cli.configuration_check import _of_people
from daemon.cli.main import main
from daemon.config.model import load
from daemon.console.auth import access as access_module
from daemon.console.auth.users import BadUser, By, Role, may

PASSWORD = "twelve chars and more"
SYSTEM = By("root", "system")
PAGE = "/jackpots/red"


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    monkeypatch.setattr(access_module, "hash_password", cheap)
    one = Console(tmp_path, config=CONFIG.replace("{", "{{").replace("}", "}}"))
    yield one
    one.house.close()
    one.store.close()
    one.journal.close()


@pytest.fixture
def pools(console: Console, tmp_path: Path) -> Iterator[PoolHouse]:
    with pool_house(console, tmp_path) as one:
        yield one


class Site:
    """The people of a site: two supervisors, an administrator, an inspector, all confirmed."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.users = console.house.access.users
        self.secrets: dict[str, str] = {}
        roles: dict[str, Role] = {"sam": "supervisor", "sue": "supervisor", "ada": "administrator", "ines": "inspector"}
        for name, role in roles.items():
            self.users.add(SYSTEM, name, role, (), cheap(PASSWORD))
            self.enrol(name)
        self.users.confirm(SYSTEM, "ines")
        for name in ("sam", "sue", "ada"):
            self.users.confirm(By("ines", "inspector"), name)

    def enrol(self, name: str) -> None:
        """Whoever can sign in as `name` sets up the second factor."""
        secret = self.secrets[name] = pyotp.random_base32()
        by = By(name, self.users.find(name).role)
        self.users.set_factor(by, name, secret, pyotp.TOTP(secret).at(self.console.now))

    def code(self, name: str) -> str:
        """That of the next period: each counts once."""
        self.console.now += timedelta(seconds=31)
        return pyotp.TOTP(self.secrets[name]).at(self.console.now)

    def browser(self, name: str) -> httpx.AsyncClient:
        """Of somebody who signed in as `name`."""
        return self.console.browser(secret=self.users.begin(name, "10.0.0.7", "test"))


@pytest.fixture
def site(console: Console) -> Site:
    return Site(console)


async def order(browser: httpx.AsyncClient, name: str, **fields: str) -> httpx.Response:
    return await browser.post(f"{PAGE}/order/{name}", data={"id": "0123456789abcdef", **fields})


def win(pools: PoolHouse) -> str:
    pools.round("bac-12", "bac-12:1", ((1, 100),), pair(1))
    pools.tell()
    return "bac-12:1/1"


def state(pools: PoolHouse) -> str:
    return pools.keeper.books["red"].wins[0].state


async def test_two_confirmed_people_with_their_codes_pay_a_win(pools: PoolHouse, site: Site) -> None:
    name = win(pools)
    for who, what, then in (("sam", "confirm", "confirmed"), ("sue", "pay", "paid")):
        async with site.browser(who) as browser:
            asked = await order(browser, what, win=name)
            assert asked.status_code == 200
            assert 'name="code"' in asked.text
            assert (await order(browser, what, win=name, code=site.code(who))).status_code == 303
        assert state(pools) == then


def test_managing_users_and_deciding_about_money_are_separate() -> None:
    for role in ("viewer", "dealer", "technician", "supervisor", "inspector", "administrator"):
        assert not (may(role, "users") and (may(role, "settle") or may(role, "decide")))


async def test_a_supervisor_makes_resets_and_changes_no_account(console: Console, site: Site) -> None:
    async with site.browser("sam") as browser:
        for form in (
            {"do": "add", "name": "eva", "role": "supervisor", "password": PASSWORD, "again": PASSWORD},
            {"do": "password", "name": "sue", "password": PASSWORD, "again": PASSWORD},
            {"do": "role", "name": "sue", "role": "viewer"},
            {"do": "factor_reset", "name": "sue"},
            {"do": "remove", "name": "sue"},
        ):
            assert (await browser.post("/users", data=form)).status_code == 403, form
    assert console.house.access.users.is_confirmed("sue")


async def test_who_resets_a_colleague_is_not_the_second_person(pools: PoolHouse, site: Site) -> None:
    """The attack of the issue: reset, sign in as them, change the password there, complete the order."""
    name = win(pools)
    async with site.browser("sam") as browser:
        assert (await order(browser, "confirm", win=name, code=site.code("sam"))).status_code == 303
    site.users.reset_factor(By("ada", "administrator"), "sue")
    site.users.set_password(By("ada", "administrator"), "sue", cheap("another dozen of chars"))
    site.users.set_password(By("sue", "supervisor"), "sue", cheap("yet another dozen of chars"))
    site.enrol("sue")
    async with site.browser("sue") as browser:
        refused = await order(browser, "pay", win=name, code=site.code("sue"))
        assert "a third person has to confirm it" in refused.text
    assert state(pools) == "confirmed"
    for by in ("ada", "sue"):
        with pytest.raises(BadUser, match="a third person"):
            site.users.confirm(By(by, site.users.find(by).role), "sue")
    async with site.browser("ines") as browser:
        form = {"do": "confirm", "name": "sue"}
        assert (await browser.post("/users", data=form)).status_code == 400  # without a code
        assert (await browser.post("/users", data={**form, "code": site.code("ines")})).status_code == 303
    async with site.browser("sue") as browser:
        assert (await order(browser, "pay", win=name, code=site.code("sue"))).status_code == 303
    assert state(pools) == "paid"


async def test_a_new_account_is_no_second_person_and_confirms_none(pools: PoolHouse, site: Site) -> None:
    name = win(pools)
    for new in ("eva", "eve"):
        site.users.add(By("ada", "administrator"), new, "supervisor", (), cheap(PASSWORD))
        site.enrol(new)
    for new in ("eva", "eve"):
        async with site.browser(new) as browser:
            refused = await order(browser, "confirm", win=name, code=site.code(new))
            assert "a third person has to confirm it" in refused.text
    with pytest.raises(BadUser, match="not confirmed"):
        site.users.confirm(By("eva", "supervisor"), "eve")
    with pytest.raises(BadUser, match="at the console"):
        site.users.confirm(SYSTEM, "eve")
    assert state(pools) == "pending"


@pytest.mark.parametrize("change", ["password", "role", "factor", "removed"])
def test_each_change_by_another_needs_a_third_person_again(site: Site, change: str) -> None:
    ada = By("ada", "administrator")
    match change:
        case "password":
            site.users.set_password(ada, "sue", cheap(PASSWORD))
        case "role":
            site.users.set_role(ada, "sue", "supervisor", ())
        case "factor":
            site.users.reset_factor(ada, "sue")
        case _:
            site.users.remove(ada, "sue")
            site.users.add(ada, "sue", "supervisor", (), cheap(PASSWORD))
    assert not site.users.is_confirmed("sue")
    assert "ada" in site.users.touched_by("sue")


def test_who_makes_himself_a_supervisor_waits_for_a_third_person(site: Site) -> None:
    site.users.add(SYSTEM, "adi", "administrator", (), cheap(PASSWORD))
    site.users.set_role(By("ada", "administrator"), "ada", "supervisor", ())
    assert not site.users.is_confirmed("ada")
    with pytest.raises(BadUser, match="a third person"):
        site.users.confirm(By("ada", "supervisor"), "ada")


async def test_a_stolen_session_and_password_give_no_order(pools: PoolHouse, site: Site) -> None:
    name = win(pools)
    async with site.browser("sam") as browser:
        for code in ("000000", "12345", "١٢٣٤٥٦"):
            assert (await order(browser, "confirm", win=name, code=code)).status_code == 403
        page = await browser.post("/account", data={"do": "factor_begin", "old": PASSWORD})
        assert "otpauth" not in page.text
        replaced = await browser.post("/account", data={"do": "factor_set", "code": "123456", "old_code": "123456"})
        assert replaced.status_code == 403
        used = site.code("sam")
        assert (await order(browser, "confirm", win=name, code=used)).status_code == 303
    assert state(pools) == "confirmed"
    async with site.browser("sam") as again:
        assert (await order(again, "confirm", win=name, code=used)).status_code == 403  # each code counts once
    assert not site.users.use_code("sam", used)


async def test_codes_are_not_guessed(pools: PoolHouse, site: Site) -> None:
    name = win(pools)
    async with site.browser("sam") as browser:
        answers = [await order(browser, "confirm", win=name, code=f"{n:06}") for n in range(12)]
        assert "Too many tries" in answers[-1].text
        right = pyotp.TOTP(site.secrets["sam"]).at(site.console.now)
        assert "Too many tries" in (await order(browser, "confirm", win=name, code=right)).text
    assert state(pools) == "pending"


async def test_a_code_opens_the_orders_of_its_session_for_five_minutes(pools: PoolHouse, site: Site) -> None:
    name = win(pools)
    async with site.browser("sam") as browser, site.browser("sam") as other:
        assert (await order(browser, "confirm", win=name, code=site.code("sam"))).status_code == 303
        change = {"account": "visible", "amount": "5", "reason": "audit"}
        assert (await order(browser, "adjust", **change)).status_code == 303
        assert 'name="code"' in (await order(other, "adjust", **change)).text
        site.console.now += access_module.PROVEN
        assert 'name="code"' in (await order(browser, "adjust", **change)).text


async def test_one_person_with_a_local_account_and_one_of_the_provider_is_one(pools: PoolHouse, site: Site) -> None:
    name = win(pools)
    async with site.browser("sam") as browser:
        assert (await order(browser, "confirm", win=name, code=site.code("sam"))).status_code == 303
    secret = site.users.begin("openid:sam:4711", "", "", "supervisor")
    async with site.console.browser(secret=secret) as browser:
        said = await browser.get((await order(browser, "pay", win=name)).headers["location"])
        assert "a person may have both kinds" in said.text
    assert state(pools) == "confirmed"


@pytest.mark.parametrize(("author", "other"), [("ada", "openid:ada:4711"), ("openid:ada:4711", "ada")])
def test_who_makes_an_account_confirms_it_under_no_other_name(site: Site, author: str, other: str) -> None:
    """One administrator with an account here and one of the provider would make, enrol and confirm both people."""
    site.users.add(By(author, "administrator"), "eva", "supervisor", (), cheap(PASSWORD))
    site.enrol("eva")
    with pytest.raises(BadUser, match="a third person"):
        site.users.confirm(By(other, "administrator"), "eva")
    assert not site.users.is_confirmed("eva")


def test_an_account_that_a_user_of_the_provider_made_is_confirmed_on_the_command_line(site: Site) -> None:
    """Anybody at the console may be its author under another name."""
    site.users.add(By("openid:ada:4711", "administrator"), "eva", "supervisor", (), cheap(PASSWORD))
    site.enrol("eva")
    site.users.confirm(SYSTEM, "eva")
    assert site.users.is_confirmed("eva")


def test_the_second_factor_is_set_up_by_the_person_with_a_code(site: Site) -> None:
    site.users.add(By("ada", "administrator"), "eva", "supervisor", (), cheap(PASSWORD))
    secret = pyotp.random_base32()
    with pytest.raises(BadUser, match="not the code"):
        site.users.set_factor(By("eva", "supervisor"), "eva", secret, "000000")
    with pytest.raises(BadUser, match="no second factor"):
        site.users.confirm(By("ines", "inspector"), "eva")


def test_the_command_line_confirms_the_first_of_a_site_alone(tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    path.write_text(
        f'[site]\nname = "s"\n[edge]\nname = "e"\n[console]\nstore = "{tmp_path}/console.db"\n', encoding="utf-8"
    )
    words = ["console", "-c", str(path), "user"]
    added = CliRunner().invoke(main, [*words, "add", "sam", "--role", "supervisor"], input=f"{PASSWORD}\n")
    assert added.exit_code == 0, added.output
    said = CliRunner().invoke(main, [*words, "confirm", "sam"])
    assert (said.exit_code, "has no second factor yet" in said.output) == (2, True)


def test_check_says_after_an_update_who_is_missing(console: Console, tmp_path: Path) -> None:
    path = tmp_path / "feltd.toml"
    settings = f'[console]\nstore = "{tmp_path}/console.db"\n[jackpots]\ninsecure = true\n'
    path.write_text(CONFIG + settings, encoding="utf-8")
    users = console.house.access.users
    for name in ("sam", "sue"):
        users.add(SYSTEM, name, "supervisor", (), cheap(PASSWORD))
    notes = _of_people(load(path))
    assert "nobody manages its users" in notes[0]
    assert "fewer than two supervisors can pay" in notes[1]
    site_people = Site.__new__(Site)
    site_people.console, site_people.users, site_people.secrets = console, users, {}
    users.add(SYSTEM, "ada", "administrator", (), cheap(PASSWORD))
    for name in ("ada", "sam", "sue"):
        site_people.enrol(name)
        users.confirm(SYSTEM if name == "ada" else By("ada", "administrator"), name)
    assert _of_people(load(path)) == []
