"""`feltd console`: serve the pages; keep users and tokens from the command line, also while it runs.

Only click is imported here: the other processes never need more of it.
"""

import contextlib
import os
import pwd
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daemon.cli.common import (
    AS_JSON,
    CONFIG,
    BadInputError,
    CommandGroup,
    echo_json,
    examples,
    load_config,
    refuse,
    run_process,
)

if TYPE_CHECKING:
    from daemon.console.auth.users import By, Hashed, Users

__all__ = ["console"]

ROLE = click.Choice(["viewer", "dealer", "technician", "supervisor", "inspector", "administrator", "manager"])
TABLES = click.option("--tables", default="", metavar="TABLE,…", help="only these  [default: all]")


@click.group(invoke_without_command=True, cls=CommandGroup, epilog=examples("feltd console -c /etc/feltd/feltd.toml"))
@CONFIG
@click.pass_context
def console(context: click.Context, config_path: Path) -> None:
    """Serve the technicians' pages; or keep their users and tokens.

    The first is made here, as the user of the service: `feltd console user add NAME --role administrator`.
    """
    context.obj = config_path
    if context.invoked_subcommand is None:
        from daemon.cli.configuration_check import dealer_mistakes, webhook_mistakes
        from daemon.config.model import signing_as
        from daemon.console.alerts.webhooks import BadWebhook
        from daemon.console.app import CannotListen, serve
        from daemon.console.dealer.unit import BadDealer
        from daemon.console.site.store import BadStore
        from daemon.journal.signing import BadKey
        from daemon.journal.store import BadJournal

        config = load_config(config_path)
        refuse(dealer_mistakes(config, config_path) + webhook_mistakes(config, config_path))
        config = signing_as(config, config.console)
        try:
            journal, full = journal_of(config.console, config.journal)
        except BadJournal as error:
            raise BadInputError(str(error)) from error
        bad = (BadStore, BadWebhook, BadDealer, BadKey, CannotListen)
        with contextlib.closing(journal):
            run_process(lambda: serve(config, journal, full=full), *bad)


def journal_of(config: Any, keeping: Any) -> tuple[Any, str]:
    """The journal of actions, and the reason if it has no room ("" if it has). Raises BadJournal."""
    from daemon.console.site.actions import take_up
    from daemon.journal.store import Journal

    journal = Journal(Path(config.journal))
    try:
        return journal, take_up(journal, keeping)
    except BaseException:
        journal.close()
        raise


@contextlib.contextmanager
def _users(config_path: Path) -> Iterator[tuple[Any, "Users", "By"]]:
    """The configuration, the users in its store, and who runs the command. A mistake ends with exit code 2."""
    from daemon.console.auth.users import BadUser, By, Users
    from daemon.console.site.store import BadStore, Store

    config = load_config(config_path)
    path = Path(config.console.store)
    _not_for_another(path)
    try:
        with contextlib.closing(Store(path)) as store:
            yield config, Users(store, lambda: datetime.now(UTC)), By(_me(), "system")
    except (BadStore, BadUser) as error:
        raise BadInputError(str(error)) from error


def _not_for_another(path: Path) -> None:
    """Refuse all but the owner of the store or its folder, root too: the service could not open what they create."""
    with contextlib.suppress(OSError):  # a missing or unreadable store gives its own message
        owner = (path if path.exists() else path.parent).stat().st_uid
        if owner != os.geteuid():
            name = _name_of(owner)
            raise BadInputError(f"{path} belongs to {name}; run this as that user, for example with sudo -u {name}")


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _me() -> str:
    return _name_of(os.getuid())


def _tables(config: Any, text: str) -> tuple[str, ...]:
    tables = tuple(one.strip() for one in text.split(",") if one.strip())
    known = [table.name for table in config.table]
    unknown = [one for one in tables if one not in known]
    if unknown:
        raise BadInputError(f"--tables {', '.join(unknown)}: not in the configuration; there are: {', '.join(known)}")
    return tables


def _password(name: str) -> "Hashed":
    """The password: asked for at a terminal, otherwise the first line of standard input."""
    from daemon.console.auth.users import hash_password, password_fault

    if sys.stdin.isatty():
        password: str = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt="The same again")
    else:
        try:
            password = sys.stdin.buffer.readline(4096).decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise BadInputError("the password on standard input is not UTF-8 text") from error
    fault = password_fault(name, password)
    if fault is not None:
        raise BadInputError(str(fault))
    return hash_password(password)


@console.group(epilog=examples("sudo -u feltd-console feltd console user add maria --role technician"))
def user() -> None:
    """Users with a password."""


@user.command("add", epilog=examples("sudo -u feltd-console feltd console user add maria --role technician"))
@click.argument("name")
@click.option("--role", type=ROLE, required=True)
@TABLES
@click.pass_obj
def add_user(config_path: Path, name: str, role: Any, tables: str) -> None:
    """Add a user. The password is asked for, or is the first line of standard input."""
    with _users(config_path) as (config, users, by):
        which = _tables(config, tables)
        users.may_add(name)
        users.may_have(role, which)
        users.add(by, name, role, which, _password(name))
    click.echo(f"{name}: {role}, tables: {', '.join(which) or 'all'}")
    _say_if_nothing_to_do(config, name, role, which)


@user.command("list", epilog=examples("sudo -u feltd-console feltd console user list"))
@AS_JSON
@click.pass_obj
def list_users(config_path: Path, as_json: bool) -> None:
    """Every user, with role and tables."""
    with _users(config_path) as (_config, users, _by):
        _listed([(one.name, one.role, one.tables) for one in users.all()], "no user yet", as_json=as_json)


@user.command("remove", epilog=examples("sudo -u feltd-console feltd console user remove maria"))
@click.argument("name")
@click.pass_obj
def remove_user(config_path: Path, name: str) -> None:
    """Remove a user; their sessions end."""
    _changed(config_path, name, "removed, the sessions have ended", lambda users, by: users.remove(by, name))


@user.command("password", epilog=examples("sudo -u feltd-console feltd console user password maria"))
@click.argument("name")
@click.pass_obj
def set_password(config_path: Path, name: str) -> None:
    """Set a password; the user's sessions end."""
    with _users(config_path) as (_config, users, by):
        users.find(name)
        users.set_password(by, name, _password(name))
    click.echo(f"{name}: new password, the sessions have ended")


@user.command("confirm", epilog=examples("sudo -u feltd-console feltd console user confirm maria"))
@click.argument("name")
@click.pass_obj
def confirm_user(config_path: Path, name: str) -> None:
    """Confirm that an account is the person's, if no user can, such as for the first account of a site."""
    said = "confirmed; may now decide about money if the role may"
    _changed(config_path, name, said, lambda users, by: users.confirm(by, name))


@user.command("role", epilog=examples("sudo -u feltd-console feltd console user role maria supervisor"))
@click.argument("name")
@click.argument("role", type=ROLE)
@TABLES
@click.pass_obj
def set_role(config_path: Path, name: str, role: Any, tables: str) -> None:
    """Change a role and the tables; the user's sessions end."""
    with _users(config_path) as (config, users, by):
        which = _tables(config, tables)
        users.set_role(by, name, role, which)
    click.echo(f"{name}: {role}, tables: {', '.join(which) or 'all'}, the sessions have ended")
    _say_if_nothing_to_do(config, name, role, which)


def _say_if_nothing_to_do(config: Any, name: str, role: str, tables: tuple[str, ...]) -> None:
    pages = config.console.dealer
    if role == "dealer" and not any(one in pages for one in tables or pages):
        said = "no table of theirs has a dealer's page: name one under [console.dealer], or they have nothing to do"
        click.echo(f"{name}: {said}", err=True)


@console.group(epilog=examples("sudo -u feltd-console feltd console token list"))
def token() -> None:
    """Tokens: of a screen on the wall, which may only read, or of a program that reads /metrics."""


@token.command("add", epilog=examples("sudo -u feltd-console feltd console token add hall-a --role viewer"))
@click.argument("name")
@click.option("--role", type=click.Choice(["viewer", "metrics"]), required=True)
@TABLES
@click.pass_obj
def add_token(config_path: Path, name: str, role: Any, tables: str) -> None:
    """Make a token. Its secret is shown once, on standard output alone."""
    with _users(config_path) as (config, users, by):
        which = _tables(config, tables)
        if role == "metrics" and which:
            raise BadInputError("--tables: a metrics token reads all of /metrics")
        secret = users.add_token(by, name, role, which)
    if role == "viewer":
        click.echo(f"{name}: open this once in the screen's browser; it is not shown again:", err=True)
        click.echo(f"{_address(config.console)}/wall?token={secret}")
    else:
        click.echo(f"{name}: the bearer token for /metrics; it is not shown again:", err=True)
        click.echo(secret)


def _address(of: Any) -> str:
    scheme = "https" if of.certificate else "http"
    url: str = of.url.rstrip("/")
    return url or f"{scheme}://{f'[{of.listen}]' if ':' in of.listen else of.listen}:{of.port}"


@token.command("list", epilog=examples("sudo -u feltd-console feltd console token list"))
@AS_JSON
@click.pass_obj
def list_tokens(config_path: Path, as_json: bool) -> None:
    """Every token, without its secret."""
    with _users(config_path) as (_config, users, _by):
        _listed([(one.name, one.role, one.tables) for one in users.tokens()], "no token yet", as_json=as_json)


@token.command("remove", epilog=examples("sudo -u feltd-console feltd console token remove hall-a"))
@click.argument("name")
@click.pass_obj
def remove_token(config_path: Path, name: str) -> None:
    """Remove a token: it is no longer accepted."""
    _changed(config_path, name, "removed, it is no longer accepted", lambda users, by: users.remove_token(by, name))


def _changed(config_path: Path, name: str, done: str, change: Callable[["Users", "By"], None]) -> None:
    with _users(config_path) as (_config, users, by):
        change(users, by)
    click.echo(f"{name}: {done}")


def _listed(rows: list[tuple[str, str, tuple[str, ...]]], nothing: str, *, as_json: bool) -> None:
    if as_json:
        echo_json([{"name": name, "role": role, "tables": tables} for name, role, tables in rows])
        return
    for name, role, tables in rows:
        click.echo(f"{name:32}  {role:10}  {', '.join(tables) or 'all'}")
    if not rows:
        click.echo(nothing, err=True)
