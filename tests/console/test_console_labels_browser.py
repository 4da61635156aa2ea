"""The address of a printed label breaks after a slash or a dot only, and is copied as it is."""

from pathlib import Path

import pytest
from floor import browser
from full_pit import full_pit, sized
from msgspec.structs import replace

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/usr/bin/chromedriver").exists(), reason="chromium-driver is not installed"),
]
# The lines of each address, as they are drawn, and what is copied of it.
LINES = """
return [...document.querySelectorAll('.label .address')].map((one) => {
  const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), lines = [], range = document.createRange();
  let bottom = -Infinity;
  for (let text; (text = texts.nextNode());)
    for (let n = 0; n < text.length; n++) {
      range.setStart(text, n); range.setEnd(text, n + 1);
      const box = range.getBoundingClientRect();
      if (box.top >= bottom - 1) { lines.push(''); bottom = box.bottom; }
      lines[lines.length - 1] += text.data[n];
    }
  range.selectNodeContents(one);
  getSelection().removeAllRanges(); getSelection().addRange(range);
  return [lines, getSelection().toString(), one.scrollWidth > one.clientWidth];
});
"""


@pytest.mark.parametrize("base", ["http://pit", "https://console.casino-grande.example", f"https://{60 * 'a'}.example"])
def test_an_address_breaks_between_its_parts_and_is_copied_whole(tmp_path: Path, base: str) -> None:
    with full_pit(tmp_path, 6) as pit, browser(pit) as page:
        context = pit.console.house.context
        context.config = replace(context.config, console=replace(context.config.console, url=base))
        page.come_in("tess")
        page.go("/table/stud-01/labels")
        for media in ("screen", "print"):
            page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
            for size in ((1280, 800), (390, 844)):
                sized(page, size)
                found: list[tuple[list[str], str, bool]] = page.driver.execute_script(LINES)
                assert [copied for _, copied, _ in found] == [
                    f"{base}/table/stud-01/device/{name}" for name in ("shuffler-1", "bets-1")
                ]
                for drawn, _, wider in found:
                    assert not wider
                    whole = [one for one in drawn[:-1] if "aaaa" not in one]  # that name fits no line
                    assert all(one.endswith(("/", ".")) for one in whole), (media, size, drawn)
