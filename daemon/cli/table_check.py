"""Checks the new text of a configuration before it is used: for `feltd table` and the console's page of it."""

import re
import tempfile
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from daemon.cli.common import BadInputError, load_config, run_until_interrupted
from daemon.cli.configuration_check import Probed, probe_devices
from daemon.cli.processes import mistakes_of
from daemon.config.devices_and_games import missing
from daemon.config.model import Config

__all__ = ["Checked", "check", "field_of", "probed"]


class Checked(Struct, frozen=True):
    """`mistakes`: line of the text (0: none) and what is wrong. `lacks`: what no device of the table reports."""

    config: Config | None
    mistakes: tuple[tuple[int, str], ...] = ()
    lacks: tuple[str, ...] = ()


def check(text: str, path: Path, table: str) -> Checked:
    """All that `feltd check` refuses in this text for the file at `path`, and what `table` lacks. Raises OSError."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".change-") as folder:
        draft = Path(folder, path.name)
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o600)
        for key in path.parent.iterdir():  # the MAC keys beside a configuration
            if "mac" in key.name and key.name != path.name:
                Path(folder, key.name).symlink_to(key)
        try:
            config = load_config(draft)
            mistakes, untold = mistakes_of(config, draft), missing(config, draft)
        except BadInputError as error:
            config, mistakes, untold = None, error.message.splitlines(), []
    lacks = (line.removeprefix(f"{draft}:").partition(": ")[2] for line in untold)
    named = tuple(line for line in lacks if line.startswith(f"{table}:"))
    return Checked(config, tuple(_placed(one.removeprefix(f"{draft}:")) for one in mistakes), named)


def _placed(mistake: str) -> tuple[int, str]:
    number, _, said = mistake.partition(": ")
    return (int(number), said) if number.isdigit() else (0, mistake)


def field_of(line: int, text: str, table: str) -> str:
    """The field of the console's form that a line of the text belongs to; "" for one of another table."""
    field, devices, here = "", -1, False
    for one in text.splitlines()[:line]:
        match one.split("#")[0].strip():
            case "[[table]]":
                field, devices, here = "name", -1, False
            case "[table.options]":
                field = "options"
            case "[[table.device]]":
                devices += 1
                field = f"device-{devices}"
            case header if header.startswith("["):
                field = field if header == "[table.device.options]" else ""
            case pair if devices < 0 and field != "options" and (key := re.match(r"(name|ruleset|area) *= *", pair)):
                field = key[1]
                here = here or pair == f'name = "{table}"'
    return field if here else ""


def probed(config: Config, table: str, devices: list[str]) -> list[Probed]:
    """What these devices of a table answer; those that were not waited for are missing."""
    (one,) = (one for one in config.table if one.name == table)
    alone = replace(one, device=tuple(device for device in one.device if device.name in devices))
    return run_until_interrupted(probe_devices(replace(config, table=(alone,)))) or []
