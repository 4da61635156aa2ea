"""Users with their passwords and roles, tokens of screens and programs, and sessions, in the console's store.

This module does no web I/O and does not wait. The store holds only the scrypt hash of a password and the SHA-256 of a
token's or session's 32 random bytes, so a copy of the file gives no access. It does give codes: secrets of second
factors are stored as they are. A change and its note for the journal of actions are one transaction.
"""

import hashlib
import hmac
import re
import secrets
import sqlite3
import unicodedata
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from daemon.console.auth.second_factor import step_of
from daemon.console.site.actions import leave
from daemon.console.site.store import Store
from protocols.contract.people import may_be_one_person

__all__ = [
    "NAMES",
    "ROLES",
    "BadUser",
    "By",
    "Hashed",
    "Person",
    "Right",
    "Role",
    "Session",
    "Token",
    "TokenRole",
    "Users",
    "hash_password",
    "may",
    "password_fault",
]

Role: TypeAlias = Literal["viewer", "dealer", "technician", "supervisor", "inspector", "administrator", "manager"]
# A viewer's token is a screen on the wall, a metrics token a program that reads /metrics and nothing else.
TokenRole: TypeAlias = Literal["viewer", "metrics"]
Right: TypeAlias = Literal[
    "look",  # pit, table, device, fairness, alerts
    "deal",  # the dealer's page of a table
    "decide",  # void and correct rounds, state a series, confirm counts
    "command",  # send a command to a device
    "acknowledge",  # an incident
    "trace",  # the wire of a device
    "bundle",  # for support
    "setup",  # add, change and remove tables of this computer
    "silence",  # alerts during maintenance
    "users",
    "vouch",  # confirm that an account is that of the person whose name it has
    "tokens",
    "recall",  # rounds down to the bytes on the wire
    "export",
    "actions",  # who did what
    "books",  # pools of jackpots and their books
    "floor",  # figures of the tables: rounds an hour, turnover, win
    "sheet",  # the sheet of a table: its sign and its counts
    "open",  # open and close a table, change its limits
    "count",  # enter chips and money of a table
    "settle",  # confirm and pay wins, propose and approve changes of pools, make tables with new terms
]
ROLES: tuple[Role, ...] = get_args(Role)
_TECHNICIAN = frozenset[Right]({"look", "command", "acknowledge", "trace", "bundle", "setup"})
_RIGHTS: Mapping[str, frozenset[Right]] = MappingProxyType(
    {
        "viewer": frozenset({"look"}),
        "dealer": frozenset({"deal", "sheet", "count"}),
        "technician": _TECHNICIAN,
        "supervisor": _TECHNICIAN
        | frozenset[Right]({"deal", "decide", "silence", "vouch", "tokens", "actions", "books", "settle"})
        | frozenset[Right]({"floor", "sheet", "open", "count"}),
        "inspector": frozenset({"look", "trace", "recall", "export", "actions", "books", "vouch", "floor", "sheet"}),
        # A role that manages users has no rights about money.
        "administrator": frozenset({"look", "users", "vouch", "tokens", "actions"}),
        "manager": frozenset({"look", "actions", "floor", "sheet", "open"}),
    }
)

SYSTEM = "system"
"""The role of the command line."""
NAMES = "a name is small letters, digits, dots, hyphens and underscores, at most 32, and begins with a letter"
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,31}")
SHORTEST, LONGEST = 12, 256
MOST_SESSIONS = 20
_SLACK = 300  # seconds a clock may be set back without ending sessions
_SCHEMA = """
CREATE TABLE IF NOT EXISTS user (
    name TEXT PRIMARY KEY, role TEXT NOT NULL, tables TEXT NOT NULL, made INTEGER NOT NULL,
    n INTEGER NOT NULL, r INTEGER NOT NULL, p INTEGER NOT NULL, salt BLOB NOT NULL, hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS token (
    name TEXT PRIMARY KEY, role TEXT NOT NULL, tables TEXT NOT NULL, made INTEGER NOT NULL, hash BLOB NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session (
    hash BLOB PRIMARY KEY, user TEXT NOT NULL, outside TEXT, began INTEGER NOT NULL, seen INTEGER NOT NULL,
    address TEXT NOT NULL, agent TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS session_by_user ON session (user);
CREATE TABLE IF NOT EXISTS second_factor (
    name TEXT PRIMARY KEY, secret TEXT NOT NULL, made INTEGER NOT NULL, used INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS touched (
    name TEXT NOT NULL, author TEXT NOT NULL, PRIMARY KEY (name, author)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS confirmed (
    name TEXT PRIMARY KEY, author TEXT NOT NULL, made INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""


def may(role: str, right: Right) -> bool:
    """Whether a role has a right. An unknown role has none."""
    return right in _RIGHTS.get(role, frozenset())


class BadUser(Exception):
    """An invalid change of users or tokens. `key` is its text in the catalogs; the message is English."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class Hashed(Struct, frozen=True):
    """A password's scrypt hash (32 bytes) with the parameters it was made with."""

    n: int
    r: int
    p: int
    salt: bytes
    hash: bytes

    def fits(self, password: str) -> bool:
        """Whether this is the password, compared in constant time. It takes some 0.1 s: for a thread."""
        return hmac.compare_digest(_scrypt(password, self.n, self.r, self.p, self.salt), self.hash)


def _scrypt(password: str, n: int, r: int, p: int, salt: bytes) -> bytes:
    # The same letters may be typed in several ways; keyboards differ. 128·n·r bytes are needed, OpenSSL needs more.
    text = unicodedata.normalize("NFKC", password).encode(errors="surrogatepass")
    return hashlib.scrypt(text, salt=salt, n=n, r=r, p=p, maxmem=128 * n * r * p + 2**20, dklen=32)


def hash_password(password: str) -> Hashed:
    """The hash of a password. It takes some 0.1 s and 32 MiB: for a thread."""
    n, r, p, salt = 2**15, 8, 1, secrets.token_bytes(16)
    return Hashed(n, r, p, salt, _scrypt(password, n, r, p, salt))


def password_fault(name: str, password: str) -> BadUser | None:
    """Why this password is not accepted for `name`; none if it is."""
    if len(password) < SHORTEST:
        return BadUser("access.password_short", f"a password has at least {SHORTEST} characters")
    if len(password) > LONGEST:
        return BadUser("access.password_long", f"a password has at most {LONGEST} characters")
    if name.casefold() in password.casefold():
        return BadUser("access.password_name", "a password does not contain the name")
    return None


class By(Struct, frozen=True):
    """The author of a change: a console user, or a system user at the command line with the role "system"."""

    name: str
    role: str


class Person(Struct, frozen=True):
    """A local user. `tables` empty: all."""

    name: str
    role: str
    tables: tuple[str, ...]
    made: datetime


class Token(Struct, frozen=True):
    """A token, without its secret. `tables` empty: all."""

    name: str
    role: str
    tables: tuple[str, ...]
    made: datetime


class Session(Struct, frozen=True):
    """A session. `id` is no secret; `outside`: of a user of an OpenID provider, without a local account."""

    id: str
    user: str
    role: str
    tables: tuple[str, ...]
    outside: bool
    began: datetime
    seen: datetime
    address: str
    agent: str


class Users:
    """The users, tokens and sessions of one store. Times come from `now`, UTC.

    A session ends when it was not used for `idle`, and `longest` after it began. `on_change` is called after each
    change; its note for the journal of actions then waits in the store.
    """

    def __init__(
        self,
        store: Store,
        now: Callable[[], datetime],
        *,
        idle: timedelta = timedelta(minutes=30),
        longest: timedelta = timedelta(hours=12),
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Raises BadStore."""
        self._store = store
        self._now = now
        self._idle = int(idle.total_seconds())
        self._longest = int(longest.total_seconds())
        self._on_change = on_change
        self._used: dict[bytes, int] = {}
        """By session, its last use that could not be written to the store."""
        store.has(_SCHEMA)

    def _change(self, by: By, action: str, target: str, detail: dict[str, object], *statements: "_Statement") -> None:
        """Execute a change and write its note in one transaction. Raises BadStore, sqlite3.IntegrityError."""
        with self._store.write() as db:
            for sql, values in statements:
                db.execute(sql, values)
            leave(db, self._now(), by.name, by.role, action, target, detail)
        self._on_change()

    # ---- users

    def all(self) -> list[Person]:
        """All users by name."""
        found = self._store.db.execute("SELECT name, role, tables, made FROM user ORDER BY name")
        return [Person(name, role, _tables(tables), _time(made)) for name, role, tables, made in found]

    def find(self, name: str) -> Person:
        """The user of this name. Raises BadUser if there is none."""
        for one in self.all():
            if one.name == name:
                return one
        raise BadUser("access.no_user", f"there is no user {name!r}")

    def hashed(self, name: str) -> Hashed | None:
        """The hash of a user's password."""
        row = self._store.db.execute("SELECT n, r, p, salt, hash FROM user WHERE name = ?", (_text(name),)).fetchone()
        return Hashed(*row) if row else None

    @staticmethod
    def may_have(role: str, tables: tuple[str, ...]) -> None:
        """Refuse tables for roles that manage users, read the log of actions or see pools. Raises BadUser."""
        if tables and (may(role, "users") or may(role, "actions") or may(role, "books")):
            raise BadUser("access.all_or_none", f"the role {role} is for all tables")

    def may_add(self, name: str) -> None:
        """Check a new user before a password is asked for. Raises BadUser."""
        _check_name(name)
        if self.hashed(name) is not None:
            raise BadUser("access.user_there", f"there is a user {name!r} already")

    def add(self, by: By, name: str, role: Role, tables: tuple[str, ...], password: Hashed) -> None:
        """Add a user. Raises BadUser, BadStore."""
        _check_name(name)
        self.may_have(role, tables)
        values = (name, role, " ".join(tables), self._seconds(), *msgspec.structs.astuple(password))
        detail: dict[str, object] = {"role": role, "tables": tables}
        try:
            insert = "INSERT INTO user VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            self._change(by, "user.add", f"user:{name}", detail, (insert, values), *_forget(name), *_touch(name, by))
        except sqlite3.IntegrityError as error:
            raise BadUser("access.user_there", f"there is a user {name!r} already") from error

    def remove(self, by: By, name: str) -> None:
        """Remove a user. Their sessions end. Raises BadUser, BadStore."""
        self._not_the_last_administrator(self.find(name))
        delete = ("DELETE FROM user WHERE name = ?", (name,))
        self._change(by, "user.remove", f"user:{name}", {}, delete, _end(name), *_forget(name))

    def set_password(self, by: By, name: str, password: Hashed) -> None:
        """Give a user another password. Their sessions end. Raises BadUser, BadStore."""
        self.find(name)
        update = "UPDATE user SET n = ?, r = ?, p = ?, salt = ?, hash = ? WHERE name = ?"
        values = (*msgspec.structs.astuple(password), name)
        own = by.role != SYSTEM and by.name == name
        touch = () if own else _touch(name, by)
        self._change(by, "user.password", f"user:{name}", {}, (update, values), _end(name), *touch)

    def set_role(self, by: By, name: str, role: Role, tables: tuple[str, ...]) -> None:
        """Give a user another role and its tables. Their sessions end. Raises BadUser, BadStore."""
        person = self.find(name)
        self.may_have(role, tables)
        if role != "administrator":
            self._not_the_last_administrator(person)
        update = ("UPDATE user SET role = ?, tables = ? WHERE name = ?", (role, " ".join(tables), name))
        detail: dict[str, object] = {"role": role, "tables": tables, "before": person.role}
        self._change(by, "user.role", f"user:{name}", detail, update, _end(name), *_touch(name, by))

    def _not_the_last_administrator(self, person: Person) -> None:
        if person.role == "administrator" and [one.role for one in self.all()].count("administrator") == 1:
            text = f"{person.name!r} is the last administrator; make another one first"
            raise BadUser("access.last_administrator", text)

    # ---- second factors, and accounts that a third person confirmed

    def has_factor(self, name: str) -> bool:
        """Whether this user has a second factor."""
        return (
            self._store.db.execute("SELECT 1 FROM second_factor WHERE name = ?", (_text(name),)).fetchone() is not None
        )

    def set_factor(self, by: By, name: str, secret: str, code: str, old: str = "") -> None:
        """Set the person's own second factor: `code` shows that their device has the secret, `old` is of the replaced
        one.

        After a first one, or one after a reset, the account must be confirmed. Raises BadUser, BadStore.
        """
        self.find(name)
        replaces = self.has_factor(name)
        step = step_of(secret, code, self._now())
        if step is None or (replaces and not self.use_code(name, old)):
            raise BadUser("access.code_wrong", "that is not the code which the device shows now")
        touch = () if replaces else _touch(name, by)
        insert = "INSERT OR REPLACE INTO second_factor VALUES (?, ?, ?, ?)"
        values = (name, secret, self._seconds(), step)
        self._change(by, "user.second_factor", f"user:{name}", {}, (insert, values), *touch)

    def reset_factor(self, by: By, name: str) -> None:
        """Remove a lost second factor. The person's sessions end, and the account must be confirmed again. Raises
        BadUser, BadStore.
        """
        self.find(name)
        delete = ("DELETE FROM second_factor WHERE name = ?", (name,))
        self._change(by, "user.second_factor_reset", f"user:{name}", {}, delete, _end(name), *_touch(name, by))

    def use_code(self, name: str, code: str) -> bool:
        """Whether this is a code of this user now that was not used. It counts once. Raises BadStore."""
        with self._store.write() as db:
            row = db.execute("SELECT secret, used FROM second_factor WHERE name = ?", (_text(name),)).fetchone()
            step = step_of(row[0], code, self._now()) if row else None
            if step is None or step <= row[1]:
                return False
            db.execute("UPDATE second_factor SET used = ? WHERE name = ?", (step, name))
        return True

    def is_confirmed(self, name: str) -> bool:
        """Whether a third person confirmed this account since its last change by others."""
        return self._store.db.execute("SELECT 1 FROM confirmed WHERE name = ?", (_text(name),)).fetchone() is not None

    def touched_by(self, name: str) -> list[str]:
        """The people who made or changed an account since it was confirmed."""
        found = self._store.db.execute("SELECT author FROM touched WHERE name = ? ORDER BY author", (_text(name),))
        return [author for (author,) in found]

    def confirm(self, by: By, name: str, others: Collection[str] = ()) -> None:
        """Confirm that the account and its second factor are the person's, as `by` has seen. Raises BadUser, BadStore.

        `by` is neither the person nor one who changed the account (also `others`), and is confirmed. Users of the
        provider cannot confirm, because they may also have this account or one that changed it. The command line
        confirms where no user can, such as the first one of a site.
        """
        person = self.find(name)
        touched = {*self.touched_by(name), *others}
        if not self.has_factor(name):
            raise BadUser("access.confirm_factor", f"{name} has no second factor yet: they set it up at /account")
        may_confirm = [
            one.name
            for one in self.all()
            if one.name != person.name
            and may(one.role, "vouch")
            and self.is_confirmed(one.name)
            and not any(may_be_one_person(one.name, author) for author in touched)
        ]
        if by.role == SYSTEM:
            if may_confirm:
                text = f"{', '.join(may_confirm)} can confirm it at the console, on the page of the users"
                raise BadUser("access.confirm_console", text)
        elif any(may_be_one_person(by.name, one) for one in {name, *touched}):
            raise BadUser("access.confirm_third", "a third person confirms it: not who has it, made it or changed it")
        elif by.name not in may_confirm:
            raise BadUser("access.confirm_yourself", "your own account is not confirmed yet")
        delete = ("DELETE FROM touched WHERE name = ?", (name,))
        insert = ("INSERT OR REPLACE INTO confirmed VALUES (?, ?, ?)", (name, by.name, self._seconds()))
        self._change(by, "user.confirm", f"user:{name}", {}, delete, insert)

    # ---- tokens

    def tokens(self) -> list[Token]:
        """All tokens by name."""
        found = self._store.db.execute("SELECT name, role, tables, made FROM token ORDER BY name")
        return [Token(name, role, _tables(tables), _time(made)) for name, role, tables, made in found]

    def add_token(self, by: By, name: str, role: TokenRole, tables: tuple[str, ...] = ()) -> str:
        """Add a token and return its secret, which cannot be read again later. Raises BadUser, BadStore."""
        _check_name(name)
        secret = secrets.token_urlsafe(32)
        values = (name, role, " ".join(tables), self._seconds(), _sha256(secret))
        detail: dict[str, object] = {"role": role, "tables": tables}
        try:
            self._change(by, "token.add", f"token:{name}", detail, ("INSERT INTO token VALUES (?, ?, ?, ?, ?)", values))
        except sqlite3.IntegrityError as error:
            raise BadUser("access.token_there", f"there is a token {name!r} already") from error
        return secret

    def remove_token(self, by: By, name: str) -> None:
        """Remove a token. Raises BadUser, BadStore."""
        if name not in {one.name for one in self.tokens()}:
            raise BadUser("access.no_token", f"there is no token {name!r}")
        self._change(by, "token.remove", f"token:{name}", {}, ("DELETE FROM token WHERE name = ?", (name,)))

    def token(self, secret: str) -> Token | None:
        """The token with this secret."""
        row = self._store.db.execute(
            "SELECT name, role, tables, made FROM token WHERE hash = ?", (_sha256(secret),)
        ).fetchone()
        return Token(row[0], row[1], _tables(row[2]), _time(row[3])) if row else None

    # ---- sessions

    def begin(self, user: str, address: str, agent: str, outside: str | None = None) -> str:
        """The secret of a new session; `outside` is the role of a user of the OpenID provider.

        Expired sessions are deleted, and a user's oldest one above the limit. Raises BadStore.
        """
        secret, now = secrets.token_urlsafe(32), self._seconds()
        with self._store.write() as db:
            self._write_used(db)
            db.execute(_CLEAR, self._alive())
            db.execute(
                "DELETE FROM session WHERE user = ? AND hash NOT IN "
                "(SELECT hash FROM session WHERE user = ? ORDER BY began DESC LIMIT ?)",
                (user, user, MOST_SESSIONS - 1),
            )
            db.execute(
                "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)",
                (_sha256(secret), user, outside, now, now, _text(address)[:64], _text(agent)[:200]),
            )
        self._used.clear()
        return secret

    def session(self, secret: str) -> Session | None:
        """The valid session with this secret."""
        return self._session(_sha256(secret))

    def _session(self, digest: bytes) -> Session | None:
        found = self._sessions("s.hash = ?", digest)
        return found[0] if found else None

    def sessions(self, user: str | None = None) -> list[Session]:
        """The valid sessions of one user or all, the newest first."""
        return self._sessions("?") if user is None else self._sessions("s.user = ?", user)

    def _sessions(self, which: str, value: str | bytes | int = 1) -> list[Session]:
        """The session's user with the current role; none if the local user was removed."""
        idle, longest, latest = self._alive()
        query = f"{_SELECT} WHERE {which} AND began > ? ORDER BY s.began DESC, s.hash"
        found = self._store.db.execute(query, (value, longest)).fetchall()
        return [
            Session(digest.hex(), user, role, _tables(tables), bool(outside), _time(began), _time(last), address, agent)
            for digest, user, role, tables, outside, began, seen, address, agent in found
            if role is not None and idle < (last := max(seen, self._used.get(digest, 0))) <= latest
        ]

    def used(self, session: Session) -> None:
        """Note the use of a session. It is written seldom, so that a request does not cost a commit.

        Raises BadStore; the session then stays valid as long as this process runs.
        """
        if (self._now() - session.seen).total_seconds() >= self._idle / 20:
            self._used[_digest(session.id)] = self._seconds()
            with self._store.write() as db:
                self._write_used(db)
            self._used.clear()

    def _write_used(self, db: sqlite3.Connection) -> None:
        db.executemany("UPDATE session SET seen = ? WHERE hash = ?", [(at, one) for one, at in self._used.items()])

    def end(self, by: By, *, user: str | None = None, session: str | None = None) -> None:
        """End one session, those of one user, or all. Raises BadStore."""
        if session is not None:
            statement: _Statement = ("DELETE FROM session WHERE hash = ? AND user = ?", (_digest(session), user))
        else:
            statement = ("DELETE FROM session", ()) if user is None else _end(user)
        self._change(by, "session.end", f"user:{user}" if user else "", {"session": (session or "all")[:8]}, statement)

    def _alive(self) -> tuple[int, int, int]:
        now = self._seconds()
        return now - self._idle, now - self._longest, now + _SLACK

    def _seconds(self) -> int:
        return int(self._now().timestamp())


_Statement: TypeAlias = tuple[str, tuple[object, ...]]
# A session that began in the future would never end.
_CLEAR = "DELETE FROM session WHERE NOT (seen > ? AND began > ? AND seen <= ?)"
_SELECT = (
    "SELECT s.hash, s.user, coalesce(s.outside, u.role), coalesce(u.tables, ''), s.outside, s.began, s.seen, "
    "s.address, s.agent FROM session s LEFT JOIN user u ON u.name = s.user AND s.outside IS NULL"
)


def _touch(name: str, by: By) -> tuple[_Statement, ...]:
    """The statements after a change of an account by another person, or its first second factor: it must be confirmed
    before it decides about money.
    """
    author = f"system:{by.name}" if by.role == SYSTEM else by.name
    insert = "INSERT OR IGNORE INTO touched VALUES (?, ?)"
    return ("DELETE FROM confirmed WHERE name = ?", (name,)), (insert, (name, author))


def _forget(name: str) -> tuple[_Statement, ...]:
    return (
        ("DELETE FROM second_factor WHERE name = ?", (name,)),
        ("DELETE FROM touched WHERE name = ?", (name,)),
        ("DELETE FROM confirmed WHERE name = ?", (name,)),
    )


def _end(user: str) -> _Statement:
    return "DELETE FROM session WHERE user = ?", (user,)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadUser("access.names", NAMES)


def _sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


def _digest(id_: str) -> bytes:
    """The bytes of a session's id; none for an invalid id."""
    try:
        return bytes.fromhex(id_)
    except ValueError:
        return b""


def _text(text: str) -> str:
    """The text in a form that SQLite accepts."""
    return text.encode(errors="replace").decode()


def _tables(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
