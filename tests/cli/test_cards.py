"""The technician's cards: each device and language, and with the places of a site."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from markupsafe import escape

from daemon.cli.main import main
from daemon.words.words import LANGS, Lang, catalog
from drivers import DRIVERS

SITE = Path("systemd/feltd.toml")


@pytest.mark.parametrize("lang", LANGS)
def test_each_kind_of_device_has_a_card(tmp_path: Path, lang: Lang) -> None:
    result = CliRunner().invoke(main, ["cards", str(tmp_path), "--language", lang])
    assert result.exit_code == 0, result.output
    index = (tmp_path / "index.html").read_text()
    for name, driver in DRIVERS.items():
        text = (tmp_path / f"{name}.html").read_text()
        assert f'<html lang="{lang}">' in text
        assert all(f"<code>{fault.code}</code>" in text for fault in driver.faults), name
        assert escape(catalog(lang)[f"card.title.{name}"]) in text
        assert f'href="{name}.html"' in index


@pytest.mark.parametrize("lang", LANGS)
def test_the_card_of_the_shoe_says_how_its_mode_is_switched(tmp_path: Path, lang: Lang) -> None:
    CliRunner().invoke(main, ["cards", str(tmp_path), "--language", lang])
    text = (tmp_path / "bee_tek_shoe.html").read_text()
    assert str(escape(catalog(lang)["card.setup"])) in text
    assert all(words in text for words in ("Diagnostic", "Manual Burn Cards", "Enter"))
    assert "Manual Burn Cards" not in (tmp_path / "hid_shoe.html").read_text()


def test_a_card_of_a_site_names_where_the_devices_stand(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["cards", str(tmp_path), "-c", str(SITE)])
    assert result.exit_code == 0, result.output
    assert "<strong>rou-3/wheel-1</strong>" in (tmp_path / "cammegh_ss2.html").read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["cards", str(tmp_path / "file" / "cards")])
    assert result.exit_code == 2
    assert f"{tmp_path}/file" in result.output
