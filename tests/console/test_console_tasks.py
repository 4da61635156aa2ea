"""The tasks of technicians, managers and dealers stay within their presses and keys; at length those of everybody."""

import shutil
from pathlib import Path

import pytest
from floor import browser
from full_pit import full_pit
from helpers import at_length
from tasks import TASKS, Book, Hand, at_tables, fantan, in_a_pit, manager_of_devices, technician

from simulators.lab.broker import find_mosquitto

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(find_mosquitto() is None, reason="mosquitto is not installed"),
    pytest.mark.skipif(shutil.which("chromedriver") is None, reason="chromium-driver is not installed"),
]


def test_a_technician_and_a_manager_stay_within_the_presses(tmp_path: Path) -> None:
    book = Book()
    if at_length(False, True):
        in_a_pit(book, tmp_path)
    else:
        with full_pit(tmp_path, 36) as pit, browser(pit) as page:
            technician(book, page, pit)
            manager_of_devices(book, page, pit)
    assert [one for one in book.done if one.too_much] == []


def test_a_dealer_stays_within_the_presses_and_types_nothing(tmp_path: Path) -> None:
    book = Book()
    at_tables(book, tmp_path, at_length((fantan,), TASKS))
    assert [one for one in book.done if one.too_much] == []
    assert [one.keys for one in book.done if one.who == "dealer"] == [0] * at_length(1, 2)


def test_a_press_and_a_key_too_many_are_seen(tmp_path: Path) -> None:
    book = Book()
    with full_pit(tmp_path, 6) as pit, browser(pit) as page:
        hand = Hand(page, pit, "tess", "/")
        with book.task(hand, "technician", "searches a table", 1, 3):
            hand.write("input[name=q]", "rou-")
        with book.task(hand, "technician", "searches a table", 0, 4):
            pass
    assert [(one.presses, one.keys, one.too_much) for one in book.done] == [(1, 4, True), (1, 4, True)]
    assert "TOO MUCH" in book.text()
