"""What `feltd check` adds to the parsing of a configuration: drivers and links, games and options, the devices."""

import asyncio
import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from daemon.config import Config, line_of
from daemon.links import BadUrl, check_url, open_link
from drivers import DRIVERS
from drivers.driver import DeviceRefused, LinkLost, Sighting
from protocols.events import DeviceOnline

__all__ = ["device_mistakes", "probe_devices", "ruleset_mistakes", "summary"]

PROBE_TIMEOUT = 8.0


def device_mistakes(config: Config, path: Path) -> list[str]:
    """Drivers that do not exist, options they cannot have, links that cannot be, each as "file:line: text"."""
    mistakes = []
    for t, table in enumerate(config.table):
        for d, device in enumerate(table.device):
            where = f"{path}:%d: "
            at: tuple[Any, ...] = ("table", t, "device", d)
            driver = DRIVERS.get(device.driver)
            if driver is None:
                near = difflib.get_close_matches(device.driver, DRIVERS, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(DRIVERS)}"
                mistakes.append(where % line_of(path, (*at, "driver")) + f"no driver {device.driver!r}; {hint}")
            else:
                try:
                    msgspec.convert(device.options, driver.Options)
                except msgspec.ValidationError as error:
                    named = next((n for n in device.options if re.search(rf"[`.]{re.escape(n)}\b", str(error))), "")
                    text = f"options of {device.driver}: {error}"
                    mistakes.append(where % line_of(path, (*at, "options", named)) + text)
            try:
                check_url(device.url)
            except BadUrl as error:
                mistakes.append(where % line_of(path, (*at, "url")) + str(error))
    return mistakes


def ruleset_mistakes(config: Config, path: Path) -> list[str]:
    """Rulesets that do not exist and options they cannot have, each as "file:line: text"."""
    from rules import RULESETS
    from rules.ruleset import BadOption, options_from

    mistakes = []
    for number, table in enumerate(config.table):
        at: tuple[Any, ...] = ("table", number)
        if not table.ruleset:
            continue
        if table.ruleset not in RULESETS:
            text = f"no ruleset {table.ruleset!r}; known: {', '.join(RULESETS)}"
            mistakes.append(f"{path}:{line_of(path, (*at, 'ruleset'))}: {text}")
            continue
        try:
            options_from(RULESETS[table.ruleset], table.options)
        except BadOption as error:
            named = next((name for name in table.options if f"{name!r}" in str(error) or f"$.{name}" in str(error)), "")
            mistakes.append(f"{path}:{line_of(path, (*at, 'options', named))}: {error}")
    return mistakes


def summary(config: Config, path: Path) -> str:
    """What the configuration says, for a person to compare with the table in front of them."""
    lines = [
        f"{path}: good. Site {config.site.name}, edge {config.edge.name}, broker {config.mqtt.host}:{config.mqtt.port}"
    ]
    for table in config.table:
        lines.append(f"  {table.name}: {table.ruleset or 'no game'}")
        lines += [f"    {device.name}: {device.driver} at {device.url}" for device in table.device]
    return "\n".join(lines)


async def probe_devices(config: Config, say: Callable[[str], None]) -> bool:
    """Open every device and wait for it to come online; whether all did."""
    results = await asyncio.gather(
        *(_probe(device.driver, device.url, device.options) for table in config.table for device in table.device)
    )
    names = [f"{table.name}/{device.name}" for table in config.table for device in table.device]
    for name, (good, text) in zip(names, results, strict=True):
        say(f"{name}: {'answers' if good else 'FAILS'}: {text}")
    return all(good for good, _ in results)


class _Answered(Exception):
    """The device came online; the probe is over."""


async def _probe(driver: str, url: str, options: dict[str, Any]) -> tuple[bool, str]:
    kind = DRIVERS[driver]

    async def emit(sightings: Sequence[Sighting], memory: bytes | None = None) -> None:  # noqa: ARG001 - nothing is kept
        for one in sightings:
            if isinstance(one.event, DeviceOnline):
                raise _Answered(f"{one.event.model} {one.event.firmware}".strip())

    try:
        async with asyncio.timeout(PROBE_TIMEOUT), open_link(url) as link:
            await kind(msgspec.convert(options, kind.Options)).run(link, emit)
    except _Answered as answer:
        return True, str(answer) or driver
    except TimeoutError:
        return False, f"no answer in {PROBE_TIMEOUT:g} s; check power, cable and line settings"
    except (LinkLost, DeviceRefused) as error:
        return False, str(error)
    return False, "the driver ended"
