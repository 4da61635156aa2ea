"""Labels of a table's devices: each code holds the address of its own device's page."""

import html
import re
from pathlib import Path

import msgspec
import pytest
import segno
from console_floor import Console, opened

from protocols.contract.topics import device_topic

TABLE = "bac-12"


async def page(console: Console) -> str:
    async with console.browser("technician") as browser:
        answer = await browser.get(f"/table/{TABLE}/labels")
        assert answer.status_code == 200
        return answer.text


def begin(console: Console) -> None:
    console.begin()
    meta = {"driver": "bee_tek_shoe", "edge": "edge-7", "model": "Bee-Tek", "serial": "<S-17>"}
    console.say(device_topic("lisboa", TABLE, "shoe-1", "meta"), msgspec.json.encode(meta))
    console.device(TABLE, "page-1", "fdl_console")


@pytest.mark.parametrize(
    ("configured", "base"), [('url = "https://pit.example"', "https://pit.example"), ("", "http://pit.test")]
)
async def test_each_code_opens_the_page_of_its_device(tmp_path: Path, configured: str, base: str) -> None:
    with opened(tmp_path, configured) as console:
        begin(console)
        if configured:
            async with console.browser("technician") as browser:
                answer = await browser.get(f"/table/{TABLE}/labels", headers={"host": "pit.example"})
                text = answer.text
        else:
            text = await page(console)
        labels = re.findall(r'<li class="label">(.*?)</li>', text, re.DOTALL)
        assert len(labels) == 2
        for label, name in zip(labels, ("shoe-1", "page-1"), strict=True):
            address = f"{base}/table/{TABLE}/device/{name}"
            [drawn] = re.findall(r'<path[^>]* d="([^"]+)"', label)
            assert drawn in segno.make(address, error="m", micro=False).svg_inline(border=4, omitsize=True)
            written = re.sub(r"<[^>]+>", "", label)
            assert (TABLE in written, name in written, address in written) == (True, True, True)
        assert "Serial number &lt;S-17&gt;" in labels[0]
        assert "no serial number" in labels[1]
        assert ("<code>[console] url</code> is not set" in html.unescape(text)) == (not configured)


async def test_a_label_has_no_style_that_the_policy_forbids(tmp_path: Path) -> None:
    with opened(tmp_path) as console:
        begin(console)
        assert "style=" not in await page(console)
