"""`feltd conform`: checks whether a vendor's device implements FDL as documented."""

import asyncio
import contextlib
import subprocess
import sys
import textwrap

import click

from daemon.cli.common import (
    AS_JSON,
    BadInputError,
    echo_json,
    examples,
)
from daemon.conformance import ACTS, Act, Report, Verdict, conform as conformance
from protocols.link import DeviceRefused, LinkLost

_SIGNS: dict[Verdict, str] = {"holds": "+", "broken": "!", "not tried": "-"}
_WIDTH = 80
_NAME = 20
_ACT_LIMIT_S = 600


class _Person:
    """A person at the terminal and the device."""

    async def do(self, act: Act) -> bool:
        """Ask, and wait for Enter. A line with an `s`, and the end of the input (Ctrl-D), skip it."""
        click.echo(f"    Please {ACTS[act]}. Enter when it is done, s and Enter to skip: ", err=True, nl=False)
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            if not line.done():
                line.set_result(sys.stdin.readline())

        loop.add_reader(sys.stdin.fileno(), read)
        try:
            answer = await line
            return answer != "" and not answer.strip()
        finally:
            loop.remove_reader(sys.stdin.fileno())


class _Program:
    """A program at the device's side: called with the name of the action, it ends with 0 when the action is done."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def do(self, act: Act) -> bool:
        """Run it; one that takes too long has not done it. Raises BadInputError where it cannot be run."""
        try:
            running = await asyncio.create_subprocess_exec(self._path, act, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise BadInputError(f"{self._path}: {error.strerror}; name a program that can be run") from error
        try:
            async with asyncio.timeout(_ACT_LIMIT_S):
                return await running.wait() == 0
        except TimeoutError:
            click.echo(f"{self._path} {act} did not end within {_ACT_LIMIT_S} s; it was killed", err=True)
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                running.kill()
            await running.wait()


class _Nobody:
    """Skips every act, because standard input is no terminal."""

    async def do(self, act: Act) -> bool:  # noqa: ARG002 - none of them
        return False


@click.command(epilog=examples("feltd conform 'serial:///dev/serial/by-id/NAME?baud=115200'"))
@click.argument("url", metavar="URL")
@click.option("--act", metavar="PROGRAM", help=f"a program that acts at the device: called with {', '.join(ACTS)}")
@AS_JSON
def conform(url: str, act: str | None, as_json: bool) -> None:
    """Act as the daemon towards a device that speaks FDL, and report rule by rule what holds.

    URL is the device's link, as in the configuration. The terminal asks you for each action at the device. Exit code 1
    where a rule is broken.
    """
    from daemon.edge.links.link import BadUrl, check_url, open_link

    try:
        check_url(url)
    except BadUrl as error:
        raise BadInputError(str(error)) from error
    hands = _Program(act) if act is not None else _Person() if sys.stdin.isatty() else _Nobody()

    async def run() -> Report:
        async with open_link(url) as link:
            return await conformance(link, hands, on_part=lambda part: click.echo(part, err=True))

    try:
        report = asyncio.run(run())
    except (LinkLost, DeviceRefused) as error:
        raise click.ClickException(f"{url}: {error}; check the cable, the power and the link") from error
    if as_json:
        echo_json(report)
    else:
        click.echo(_text(report))
    raise SystemExit(1 if report.count("broken") else 0)


def _text(report: Report) -> str:
    lines = [report.device or "no device answered", ""]
    for finding in report.findings:
        lines += _paragraph(f" {_SIGNS[finding.verdict]} {finding.rule}", f"{finding.text} ({finding.section})")
        if finding.seen:
            lines += _paragraph("", f"{finding.verdict}: {finding.seen}")
    unseen = [f"{one.kind} {one.name}" for one in report.kinds if not one.seen]
    lines.append("")
    if unseen:
        lines += textwrap.wrap(f"Events of such a device that it did not report: {', '.join(unseen)}.", _WIDTH)
    held, broken, untried = (report.count(verdict) for verdict in _SIGNS)
    lines.append(f"{len(report.findings)} rules: {held} hold, {broken} broken, {untried} not tried")
    return "\n".join(lines)


def _paragraph(name: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(text, _WIDTH - _NAME - 4)
    heads = [name, *[""] * (len(wrapped) - 1)]
    return [f"{head:<{_NAME + 3}} {line}" for head, line in zip(heads, wrapped, strict=True)]
