"""A technician's card of a device: faults, remedies and commands; one printable HTML page.

The words are those of the console, in its three languages, so that a card and an alert use the same text.
"""

from collections.abc import Sequence
from pathlib import Path

import jinja2

from daemon.words.words import Lang, catalog, device_text, say, sentence
from drivers import DRIVERS
from drivers.faults import Fault
from protocols.contract.commands import name_of

__all__ = ["card_page", "index_page"]

_ORDER = {"error": 0, "warning": 1}


def _templates(lang: Lang) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"lang": lang, "t": lambda key, **values: say(lang, key, **values)}
    return made


def _faults(driver: str) -> list[Fault]:
    """The faults: errors first, and among equals those that a person must end."""
    return sorted(DRIVERS[driver].faults, key=lambda one: (_ORDER[one.severity], one.clears != "by a person"))


def card_page(driver: str, places: Sequence[tuple[str, str]], lang: Lang) -> str:
    """The card of one driver's devices. `places`: `table/device` and URL of each."""
    rows = [
        (
            one,
            *(sentence(device_text(lang, one.code, text)) for text in (one.text, one.remedy, one.round)),
        )
        for one in _faults(driver)
    ]
    commands = [(f"command.{name_of(kind)}", kind.between_rounds) for kind in DRIVERS[driver].commands]
    setup = [text for key, text in catalog(lang).items() if key.startswith(f"card.setup.{driver}.")]
    card = _templates(lang).get_template("card.html")
    return card.render(driver=driver, places=places, setup=setup, rows=rows, commands=commands)


def index_page(drivers: Sequence[str], lang: Lang) -> str:
    """The list of all cards."""
    return _templates(lang).get_template("card_list.html").render(drivers=drivers)
