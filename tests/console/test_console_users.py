"""Users, tokens, sessions: who may do what, for how long, and that nobody else ever does."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from helpers import at_length
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from daemon.console.auth.users import (
    MOST_SESSIONS,
    ROLES,
    BadUser,
    By,
    Hashed,
    Right,
    Users,
    hash_password,
    may,
    password_fault,
)
from daemon.console.site import actions
from daemon.console.site.store import BadStore, Store

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BY = By("root", "system")
HASHED = Hashed(2, 8, 1, b"s" * 16, b"h" * 32)


class Clock:
    """Time as a test hands it in."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def on(self, **passed: float) -> None:
        self.now += timedelta(**passed)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store(tmp_path / "console.db")
    yield one
    one.close()


@pytest.fixture
def users(store: Store, clock: Clock) -> Users:
    return Users(store, clock)


def notes(store: Store) -> list[tuple[Any, ...]]:
    store.has(actions._SCHEMA)
    return store.db.execute("SELECT user, role, action, target, detail FROM note_left ORDER BY id").fetchall()


# ---- roles


def test_the_table_of_rights() -> None:
    rights: tuple[Right, ...] = get_args(Right)
    table = {role: {right for right in rights if may(role, right)} for role in (*ROLES, "metrics", "", "root")}
    assert table == {
        "viewer": {"look"},
        "dealer": {"deal", "sheet", "count"},
        "technician": {"look", "command", "acknowledge", "trace", "bundle", "setup"},
        "supervisor": {
            "look",
            "command",
            "acknowledge",
            "trace",
            "bundle",
            "setup",
            "deal",
            "decide",
            "silence",
            "vouch",
            "tokens",
            "actions",
            "books",
            "settle",
            "floor",
            "sheet",
            "open",
            "count",
        },
        "inspector": {"look", "trace", "recall", "export", "actions", "books", "vouch", "floor", "sheet"},
        "administrator": {"look", "users", "vouch", "tokens", "actions"},
        "manager": {"look", "actions", "floor", "sheet", "open"},
        "metrics": set(),
        "": set(),
        "root": set(),
    }


# ---- passwords


def test_a_password_is_kept_as_scrypt_with_its_parameters() -> None:
    hashed = hash_password("correct horse")
    assert (hashed.n, hashed.r, hashed.p, len(hashed.salt)) == (2**15, 8, 1, 16)
    assert hashed.hash == hashlib.scrypt(b"correct horse", salt=hashed.salt, n=2**15, r=8, p=1, maxmem=2**26, dklen=32)
    assert hashed.fits("correct horse")
    assert not hashed.fits("correct horse ")
    assert hash_password("correct horse").salt != hashed.salt


def test_the_same_letters_however_a_keyboard_composes_them() -> None:
    assert hash_password("coração-do-casino").fits("corac\u0327a\u0303o-do-casino")
    assert not hash_password("coração-do-casino").fits("coracao-do-casino")
    assert not hash_password("a" * 12).fits("\ud800")


@pytest.mark.parametrize(
    ("password", "key"),
    [
        ("elevenchars", "access.password_short"),
        ("x" * 257, "access.password_long"),
        ("i-am-ANA-of-the-pit", "access.password_name"),
        ("twelve chars", None),
        ("長洲黑沙環提督馬路三巴仔", None),
    ],
)
def test_which_passwords_are_refused(password: str, key: str | None) -> None:
    fault = password_fault("ana", password)
    assert (fault.key if fault else None) == key


# ---- users


def test_users_come_change_and_go_each_with_a_note(users: Users, store: Store) -> None:
    users.add(BY, "rui", "supervisor", (), HASHED)
    users.add(By("rui", "supervisor"), "ana", "dealer", ("bac-1", "bac-2"), HASHED)
    users.set_role(By("rui", "supervisor"), "ana", "technician", ())
    users.set_password(By("ana", "technician"), "ana", Hashed(4, 8, 1, b"t" * 16, b"i" * 32))
    assert [(one.name, one.role, one.tables, one.made) for one in users.all()] == [
        ("ana", "technician", (), NOON),
        ("rui", "supervisor", (), NOON),
    ]
    assert users.hashed("ana") == Hashed(4, 8, 1, b"t" * 16, b"i" * 32)
    users.remove(By("rui", "supervisor"), "ana")
    assert users.hashed("ana") is None
    assert [one[:4] for one in notes(store)] == [
        ("root", "system", "user.add", "user:rui"),
        ("rui", "supervisor", "user.add", "user:ana"),
        ("rui", "supervisor", "user.role", "user:ana"),
        ("ana", "technician", "user.password", "user:ana"),
        ("rui", "supervisor", "user.remove", "user:ana"),
    ]
    assert notes(store)[1][4] == '{"role":"dealer","tables":["bac-1","bac-2"]}'


@pytest.mark.parametrize("name", ["", "Ana", "1ana", "ana maria", "a" * 33, "ana\n", "安娜", "openid:ana", "-"])
def test_names_that_are_none(users: Users, store: Store, name: str) -> None:
    with pytest.raises(BadUser) as caught:
        users.add(BY, name, "viewer", (), HASHED)
    assert caught.value.key == "access.names"
    with pytest.raises(BadUser):
        users.add_token(BY, name, "viewer")
    assert notes(store) == []


def test_failed_user_change_is_reported_and_leaves_nothing(users: Users, store: Store) -> None:
    users.add(BY, "rui", "administrator", (), HASHED)
    users.add_token(BY, "wall", "viewer")
    before = notes(store)

    def refused(key: str, change: Any, *args: Any) -> None:
        with pytest.raises(BadUser) as caught:
            change(BY, *args)
        assert caught.value.key == key

    refused("access.user_there", users.add, "rui", "viewer", (), HASHED)
    refused("access.no_user", users.remove, "eva")
    refused("access.no_user", users.set_password, "eva", HASHED)
    refused("access.no_user", users.set_role, "eva", "viewer", ())
    refused("access.last_administrator", users.remove, "rui")
    refused("access.last_administrator", users.set_role, "rui", "inspector", ())
    for role in ("administrator", "inspector"):
        refused("access.all_or_none", users.set_role, "rui", role, ("bac-1",))
        refused("access.all_or_none", users.add, "eva", role, ("bac-1",), HASHED)
    refused("access.token_there", users.add_token, "wall", "metrics")
    refused("access.no_token", users.remove_token, "hall")
    assert notes(store) == before
    users.set_role(BY, "rui", "administrator", ())  # still one
    assert users.find("rui").role == "administrator"


# ---- tokens


def test_a_token_is_told_once_and_kept_as_a_hash(users: Users, store: Store) -> None:
    secret = users.add_token(BY, "wall", "viewer", ("bac-1",))
    assert len(secret) == 43
    token = users.token(secret)
    assert token is not None
    assert (token.name, token.role, token.tables) == ("wall", "viewer", ("bac-1",))
    assert users.tokens() == [token]
    assert users.session(secret) is None
    store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() not in store.path.read_bytes()
    users.remove_token(BY, "wall")
    assert users.token(secret) is None
    assert secret not in str(notes(store))


# ---- sessions


def test_a_session_ends_when_it_is_not_used(users: Users, clock: Clock) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    secret = users.begin("ana", "10.0.0.7", "browser")
    for _ in range(3):
        clock.on(minutes=29)
        session = users.session(secret)
        assert session is not None
        users.used(session)
    clock.on(minutes=30)
    assert users.session(secret) is None
    assert users.sessions() == []


def test_a_session_ends_however_it_is_used(users: Users, clock: Clock) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    secret = users.begin("ana", "10.0.0.7", "browser")
    for _ in range(12 * 4 - 1):
        clock.on(minutes=15)
        session = users.session(secret)
        assert session is not None
        users.used(session)
    clock.on(minutes=15)
    assert users.session(secret) is None


def test_use_is_not_written_for_each_request(users: Users, store: Store, clock: Clock) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    secret = users.begin("ana", "10.0.0.7", "browser")
    before = store.db.total_changes
    for _ in range(89):
        clock.on(seconds=1)
        session = users.session(secret)
        assert session is not None
        users.used(session)
    assert store.db.total_changes == before
    clock.on(seconds=1)
    users.used(users.sessions()[0])
    assert store.db.total_changes == before + 1


def test_a_session_goes_on_although_its_use_cannot_be_written(users: Users, store: Store, clock: Clock) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    users.add(BY, "rui", "viewer", (), HASHED)
    secret, other = users.begin("ana", "10.0.0.7", "browser"), users.begin("rui", "10.0.0.8", "browser")
    store.db.execute("PRAGMA query_only=ON")
    for _ in range(3):
        clock.on(minutes=29)
        session = users.session(secret)
        assert session is not None
        with pytest.raises(BadStore):
            users.used(session)
        users.used(users.sessions("ana")[0])  # not tried again for each request
    assert users.session(other) is None
    store.db.execute("PRAGMA query_only=OFF")
    users.begin("rui", "10.0.0.8", "browser")  # which clears away what has ended
    clock.on(minutes=29)
    session = users.session(secret)
    assert session is not None
    users.used(session)
    assert Users(store, clock).session(secret) is not None
    clock.on(minutes=30)
    assert users.session(secret) is None


def test_a_clock_that_was_set_back_leaves_no_session_for_ever(users: Users, clock: Clock) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    secret = users.begin("ana", "", "")
    clock.on(seconds=-299)
    assert users.session(secret) is not None
    clock.on(days=-365)
    assert users.session(secret) is None


@pytest.mark.parametrize("how", ["password", "role", "remove", "end one", "end hers", "end all"])
def test_changes_that_end_sessions_at_once(users: Users, how: str) -> None:
    for name in ("ana", "rui", "sup"):
        users.add(BY, name, "administrator", (), HASHED)
    one, other, his = users.begin("ana", "", ""), users.begin("ana", "", ""), users.begin("rui", "", "")
    session = users.session(one)
    assert session is not None
    match how:
        case "password":
            users.set_password(BY, "ana", HASHED)
        case "role":
            users.set_role(BY, "ana", "viewer", ("bac-1",))
        case "remove":
            users.remove(BY, "ana")
        case "end one":
            users.end(BY, user="rui", session=session.id)  # not his: nothing ends
            assert users.session(one) is not None
            users.end(BY, user="ana", session=session.id)
        case "end hers":
            users.end(BY, user="ana")
        case _:
            users.end(BY)
    assert users.session(one) is None
    assert (users.session(other) is not None) == (how == "end one")
    assert (users.session(his) is not None) == (how != "end all")


def test_a_session_of_somebody_whom_another_provider_knows(users: Users, clock: Clock) -> None:
    secret = users.begin("openid:ana", "", "", "technician")
    session = users.session(secret)
    assert session is not None
    assert (session.user, session.role, session.outside) == ("openid:ana", "technician", True)
    users.add(BY, "ana", "viewer", (), HASHED)
    assert users.session(secret) == session
    clock.on(hours=1)
    assert users.session(secret) is None
    again = users.begin("openid:ana", "", "", "technician")
    users.end(BY, user="openid:ana")
    assert users.session(again) is None


def test_sessions_are_bounded(users: Users, store: Store, clock: Clock) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    secrets = []
    for _ in range(MOST_SESSIONS + 5):
        clock.on(seconds=1)
        secrets.append(users.begin("ana", "", "x" * 10_000))
    assert [users.session(one) is not None for one in secrets] == [False] * 5 + [True] * MOST_SESSIONS
    clock.on(hours=13)
    users.begin("ana", "", "")
    assert store.db.execute("SELECT count(*) FROM session").fetchone() == (1,)


def test_the_store_opens_nothing(users: Users, store: Store) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    secret = users.begin("ana", "", "")
    session = users.session(secret)
    assert session is not None
    assert session.id == hashlib.sha256(secret.encode()).hexdigest()
    assert users.session(session.id) is None
    store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() not in store.path.read_bytes()


@settings(max_examples=at_length(75, 1_500))
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_no_bytes_let_anybody_in(shared_users: Users, text: str) -> None:
    assert shared_users.session(text) is None
    assert shared_users.token(text) is None
    assert shared_users.hashed(text) in (None, HASHED)
    shared_users.end(BY, user=text, session=text)
    assert len(shared_users.sessions()) == 1


@pytest.fixture(scope="module")
def shared_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    store = Store(tmp_path_factory.mktemp("users") / "console.db")
    users = Users(store, lambda: NOON)
    users.add(BY, "ana", "administrator", (), HASHED)
    users.add_token(BY, "wall", "viewer")
    users.begin("ana", "", "")
    yield users
    store.close()


def test_a_role_of_a_later_version_may_nothing(users: Users, store: Store) -> None:
    users.add(BY, "ana", "viewer", (), HASHED)
    secret = users.begin("ana", "", "")
    with store.write() as db:
        db.execute("UPDATE user SET role = 'owner'")
    session = users.session(secret)
    assert session is not None
    assert not any(may(session.role, right) for right in get_args(Right))


# ---- against a model: who may do what, after anything


class Machine(RuleBasedStateMachine):
    """Any order of changes and of time; the model is two dictionaries."""

    IDLE, LONGEST = timedelta(minutes=30), timedelta(hours=2)
    secrets = Bundle("secrets")
    names = st.sampled_from(["ana", "rui", "eva"])
    roles = st.sampled_from(ROLES)
    tables = st.sampled_from([(), ("bac-1",), ("bac-1", "rou-1")])

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.clock = Clock()
        self.open()
        self.people: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.in_: dict[str, tuple[str, str | None, datetime, datetime]] = {}
        self.known: list[str] = []
        self.notes = 0

    def open(self) -> None:
        self.store = Store(Path(self.folder.name) / "console.db")
        self.users = Users(self.store, self.clock, idle=self.IDLE, longest=self.LONGEST)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def administrators(self) -> list[str]:
        return [name for name, (role, _) in self.people.items() if role == "administrator"]

    def tried(self, good: bool, change: Any, *args: Any) -> bool:
        """It does what the model says, or says why not."""
        try:
            change(BY, *args)
        except BadUser:
            assert not good
        else:
            assert good
            self.notes += 1
        return good

    @staticmethod
    def fit(role: str, tables: tuple[str, ...]) -> bool:
        return not tables or role in ("viewer", "dealer", "technician")

    def end(self, name: str) -> None:
        self.in_ = {secret: one for secret, one in self.in_.items() if one[0] != name}

    @rule(name=names, role=roles, tables=tables)
    def add(self, name: str, role: Any, tables: tuple[str, ...]) -> None:
        if self.tried(name not in self.people and self.fit(role, tables), self.users.add, name, role, tables, HASHED):
            self.people[name] = role, tables

    @rule(name=names)
    def remove(self, name: str) -> None:
        if self.tried(name in self.people and self.administrators() != [name], self.users.remove, name):
            del self.people[name]
            self.end(name)

    @rule(name=names)
    def password(self, name: str) -> None:
        if self.tried(name in self.people, self.users.set_password, name, HASHED):
            self.end(name)

    @rule(name=names, role=roles, tables=tables)
    def role(self, name: str, role: Any, tables: tuple[str, ...]) -> None:
        good = (
            name in self.people
            and (role == "administrator" or self.administrators() != [name])
            and self.fit(role, tables)
        )
        if self.tried(good, self.users.set_role, name, role, tables):
            self.people[name] = role, tables
            self.end(name)

    @rule(target=secrets, name=names, outside=st.none() | roles)
    def begin(self, name: str, outside: Any) -> str:
        user = name if outside is None else f"openid:{name}"
        if outside is None and name not in self.people:
            return ""
        secret = self.users.begin(user, "", "", outside)
        self.in_[secret] = (user, outside, self.clock.now, self.clock.now)
        self.known.append(secret)
        return secret

    @rule(secret=secrets)
    def use(self, secret: str) -> None:
        session = self.users.session(secret)
        if session is not None:
            self.users.used(session)
            user, outside, began, seen = self.in_[secret]
            if self.clock.now - seen >= self.IDLE / 20:
                self.in_[secret] = user, outside, began, self.clock.now

    @rule(secret=consumes(secrets))
    def log_out(self, secret: str) -> None:
        session = self.users.session(secret)
        if session is not None:
            self.users.end(BY, user=session.user, session=session.id)
            self.notes += 1
            del self.in_[secret]

    @rule(name=st.none() | names)
    def end_all(self, name: str | None) -> None:
        self.users.end(BY, user=name)
        self.notes += 1
        if name is None:
            self.in_ = {}
        else:
            self.end(name)

    @rule(seconds=st.sampled_from([1, 60, 89, 90, 600, 1799, 1800, 3600]))
    def wait(self, seconds: int) -> None:
        self.clock.on(seconds=seconds)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def each_may_what_the_model_says(self) -> None:
        now = self.clock.now
        self.in_ = {
            secret: one for secret, one in self.in_.items() if now - one[3] < self.IDLE and now - one[2] < self.LONGEST
        }
        for secret in self.known:
            session = self.users.session(secret)
            one = self.in_.get(secret)
            if one is None:
                assert session is None
                continue
            assert session is not None
            role, tables = self.people[one[0]] if one[1] is None else (one[1], ())
            assert (session.user, session.role, session.tables, session.outside) == (one[0], role, tables, bool(one[1]))
        assert {one.name: (one.role, one.tables) for one in self.users.all()} == self.people
        assert len(notes(self.store)) == self.notes

    @invariant()
    def a_administrator_stays(self) -> None:
        """Once there is one."""
        added = any(row[2] in ("user.add", "user.role") and '"administrator"' in row[4] for row in notes(self.store))
        assert bool(self.administrators()) or not added


Machine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestMachine = Machine.TestCase


def test_the_tables_are_as_they_were(store: Store, users: Users) -> None:
    """Who changes one raises the store's version: files in the field have the old one."""
    found = store.db.execute(
        "SELECT sql FROM sqlite_master WHERE name IN ('user', 'token', 'session') ORDER BY name"
    ).fetchall()
    digest = hashlib.sha256(" ".join(" ".join(sql.split()) for (sql,) in found).encode()).hexdigest()
    assert digest[:16] == "e75a5d65a7dc198a"
