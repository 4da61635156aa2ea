"""The page for integrators of betting terminals shows documents and settings that the code takes as they stand."""

import re
import tomllib
from pathlib import Path

import msgspec

from daemon.edge.links import mqtt as links_mqtt
from daemon.words import words
from drivers.bet_terminals import MOST_ANSWERS, MOST_IDS, TerminalOptions
from protocols.contract.wagers import LONGEST_REQUEST, Unreadable, WagerAnswer, decode_answer, decode_request, encode

PAGE = (Path(__file__).parents[2] / "docs/how-to/connect-a-betting-terminal.md").read_text(encoding="utf-8")
CODES = set(re.findall(r"`((?:request|terminal|seat|too|bet|late)_[a-z_]+)`", PAGE)) - {"bet_terminals"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", PAGE)


def test_requests_and_answers_of_the_page_are_valid() -> None:
    shown = [line.strip().encode() for line in blocks("json")]
    requests = [request for line in shown if not isinstance(request := decode_request(line), Unreadable)]
    answers = [answer for line in shown if isinstance(answer := decode_answer(line), WagerAnswer)]
    assert [encode(request) for request in requests] == shown[:3]
    assert [encode(answer) for answer in answers] == shown[3:]
    for answer in answers:
        assert answer.text == (words.reason("en", answer.reason) if answer.reason else "")


def test_settings_of_the_page_are_valid() -> None:
    [shown] = blocks("toml")
    [device] = tomllib.loads(shown)["table"]["device"]
    links_mqtt.check(device["url"])
    assert msgspec.convert(device["options"], TerminalOptions).terminals["t-3"] == (3, 4)


def test_every_code_of_the_page_has_a_sentence() -> None:
    catalog = words.catalog("en")
    assert len(CODES) > 8
    assert all(f"reason.{code}" in catalog or f"irregular.{code}" in catalog for code in CODES)


def test_bounds_of_the_page_are_those_of_the_code() -> None:
    for number in (MOST_IDS, MOST_ANSWERS, LONGEST_REQUEST):
        assert str(number) in PAGE
