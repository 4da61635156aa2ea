"""The design system: every text can be read on its ground in both themes, and every icon that is asked for is drawn."""

import re
from pathlib import Path

import pytest

from daemon.console import shapes
from daemon.console.games import GAMES
from daemon.console.pages.pit import WORST
from drivers import DRIVERS

HERE = Path(shapes.__file__).parent
CSS = (HERE / "static/console.css").read_text(encoding="utf-8")
TOKENS = {
    name: (light, dark or light)
    for name, light, dark in re.findall(r"--([a-z-]+): (?:light-dark\()?(#[0-9a-f]{6})(?:, (#[0-9a-f]{6})\))?;", CSS)
}
GROUNDS = ("ground", "card", "bad-ground", "warn-ground", "waits-ground", "lost-ground", "hush-ground")
# Text, and the grounds it stands on.
TEXTS = {
    "ink": (*GROUNDS, "felt"),
    "soft": ("ground", "card", "bar"),
    "link": ("ground", "card", "bad-ground", "warn-ground"),
    "good": ("ground", "card"),
    "bad": ("card", "bad-ground", "ground"),
    "warn": ("card", "warn-ground", "ground"),
    "waits": ("card", "waits-ground"),
    "quiet": ("card", "lost-ground", "ground"),
    "hush": ("card", "hush-ground"),
    "bar-ink": ("bar",),
    "press-ink": ("press",),
    "on-fill": ("fill",),
    "on-banner": ("banner",),
    "on-amber": ("amber",),
    "player": ("card",),
    "banker": ("card",),
    "tie": ("card",),
}
# Borders and signs that tell something: 3 is enough for those.
SIGNS = {"edge": ("card",), "amber": ("card",), "fill": ("card", "bad-ground")}


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXTS, 4.5), (SIGNS, 3)], ids=["text", "signs"])
def test_every_colour_can_be_read_on_its_ground(theme: int, pairs: dict[str, tuple[str, ...]], least: float) -> None:
    found = {
        (name, ground): round(contrast(TOKENS[name][theme], TOKENS[ground][theme]), 2)
        for name, grounds in pairs.items()
        for ground in grounds
    }
    assert {pair: one for pair, one in found.items() if one < least} == {}


def test_a_colour_is_said_once() -> None:
    """Outside of the tokens stand only the colours of things that have their own: cards, dice, pockets."""
    assert "prefers-color-scheme" not in CSS
    assert len(TOKENS) > 25


def test_every_icon_that_is_asked_for_is_drawn() -> None:
    drawn = set(shapes.icon_names())
    asked = {shapes.device_icon(driver) for driver in DRIVERS} | {shapes.game_icon(game) for game in GAMES}
    for template in (HERE / "templates").glob("*.html"):
        asked |= set(re.findall(r'icon\("([a-z_-]+)"', template.read_text(encoding="utf-8")))
    assert asked | set(WORST) <= drawn


@pytest.mark.parametrize("template", sorted((HERE / "templates").glob("*.html")), ids=lambda path: path.name)
def test_what_scrolls_takes_the_keyboard(template: Path) -> None:
    """Who has no pointer reaches the rest of a wide table or a long log with the keys."""
    scrolls = re.findall(r'<[a-z]+ class="[^"]*\b(?:wide|tall)\b[^"]*"[^>]*>', template.read_text(encoding="utf-8"))
    assert [one for one in scrolls if 'tabindex="0"' not in one or "aria-label" not in one] == []
