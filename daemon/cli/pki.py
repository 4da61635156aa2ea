"""`feltd pki`: certificates for the computers of a site that has no authority of its own."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daemon.cli.common import (
    AS_JSON,
    BadInputError,
    CommandGroup,
    echo_json,
    examples,
)

if TYPE_CHECKING:
    from daemon.cli.authority import Authority, Issued

FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default="/etc/feltd/pki",
    show_default=True,
    help="where the authority keeps its key, certificates and revocation list",
)
DAYS = click.option("--days", type=click.IntRange(1, 3650), default=825, show_default=True, help="how long it is valid")


@click.group(cls=CommandGroup, epilog=examples("feltd pki init --site lisboa"))
def pki() -> None:
    """A small certificate authority: makes, renews and revokes the certificates of a site.

    Keep its folder on one computer, and a copy off it: with ca.key anybody can become any user of the broker.
    """


@pki.command("init", epilog=examples("feltd pki init --site lisboa"))
@FOLDER
@click.option("--site", required=True, help="name of the casino")
def init(folder: Path, site: str) -> None:
    """Make the authority: its key, its certificate and an empty revocation list."""
    from daemon.cli.authority import Authority, BadAuthority

    try:
        made = Authority.create(folder, site)
    except BadAuthority as error:
        raise BadInputError(str(error)) from error
    click.echo(f"{folder / 'ca.crt'}: valid until {made.ends:%Y-%m-%d}; copy it to every computer, ca.key to none")


@pki.command(epilog=examples("feltd pki issue edge-7"))
@FOLDER
@DAYS
@click.option(
    "--host", "hosts", multiple=True, metavar="ADDRESS", help="for a broker: an address or name it is reached by"
)
@AS_JSON
@click.argument("name")
def issue(folder: Path, days: int, hosts: tuple[str, ...], as_json: bool, name: str) -> None:
    """Make a certificate. NAME is the user on the broker; with --host it is that of a broker or of a console."""
    _do(folder, lambda authority: authority.issue(name, hosts, days), as_json=as_json)


@pki.command(epilog=examples("feltd pki renew edge-7"))
@FOLDER
@DAYS
@AS_JSON
@click.argument("name")
def renew(folder: Path, days: int, as_json: bool, name: str) -> None:
    """A new certificate and key for NAME; the one before stays valid until it ends or is revoked."""
    _do(folder, lambda authority: authority.renew(name, days), as_json=as_json)


@pki.command(epilog=examples("feltd pki revoke edge-7"))
@FOLDER
@AS_JSON
@click.argument("name")
def revoke(folder: Path, as_json: bool, name: str) -> None:
    """Refuse every certificate of NAME made so far: a computer was stolen or a key was copied."""
    from daemon.cli.authority import BadAuthority

    try:
        authority = _open(folder)
        serials = {one.serial for one in authority.revoke(name)}
    except BadAuthority as error:
        raise BadInputError(str(error)) from error
    if as_json:
        echo_json([one for one in authority.issued() if one.serial in serials])
        return
    crl = folder / "ca.crl"
    click.echo(
        f"{name}: revoked {len(serials)}; copy {crl} to each broker (crlfile) and restart it: until then it is accepted"
    )


@pki.command("list", epilog=examples("feltd pki list"))
@FOLDER
@AS_JSON
def list_(folder: Path, as_json: bool) -> None:
    """Show every certificate that was made, with its end."""
    authority = _open(folder)
    if as_json:
        echo_json({"ends": authority.ends, "issued": authority.issued()})
        return
    now = datetime.now(UTC)
    click.echo(f"authority: valid until {authority.ends:%Y-%m-%d}")
    for one in authority.issued():
        state = "ended" if one.ends <= now else "valid"
        state = "revoked" if one.revoked else state
        click.echo(f"{one.name:24} {one.kind:7} {state:8} until {one.ends:%Y-%m-%d}  {', '.join(one.hosts)}".rstrip())


def _open(folder: Path) -> "Authority":
    from daemon.cli.authority import Authority, BadAuthority

    try:
        return Authority(folder)
    except BadAuthority as error:
        raise BadInputError(str(error)) from error


def _do(folder: Path, make: Any, *, as_json: bool) -> None:
    from daemon.cli.authority import BadAuthority

    try:
        one: Issued = make(_open(folder))
    except BadAuthority as error:
        raise BadInputError(str(error)) from error
    if as_json:
        echo_json(one)
        return
    click.echo(
        f"{folder / one.name}.crt and .key: valid until {one.ends:%Y-%m-%d}; move both to the computer of {one.name}"
    )
