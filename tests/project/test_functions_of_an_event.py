"""An event passes few functions on its way through each process, on all floors, and each process decodes it once.

Each limit is what was measured. It may only fall, unless an event does more: say what in the commit.
tests/support/event_functions.py counts.
"""

from pathlib import Path

from event_functions import event, of_the_edge, of_the_page, of_the_rules
from helpers import virtual_time

LIMITS = {"edge": 62, "rules": 60, "console": 28, "tile": 28}


@virtual_time
async def test_from_the_link_to_the_broker(tmp_path: Path) -> None:
    """Read, decoded by the wire's codec, judged by the driver, durable, published."""
    passed = await of_the_edge(tmp_path)
    assert len(passed.calls) <= LIMITS["edge"], str(passed)
    assert passed.times("encode_wire") == 1
    assert passed.times("decode_wire") == passed.times("decode_data") == 0


@virtual_time
async def test_from_the_broker_to_a_verdict_and_to_its_tile(tmp_path: Path) -> None:
    """Decoded, in order, used by the game, durable, published; then in the read model and on the table's tile."""
    passed, published = await of_the_rules(tmp_path)
    assert [message.topic for message in published if message.topic.endswith("/round/event/resolved")]
    assert len(passed.calls) <= LIMITS["rules"], str(passed)
    assert passed.times("decode_wire") == passed.times("decode_data") == 1
    tile, _, changed = of_the_page(tmp_path, published, [])
    assert "tile/bac-1" in changed
    assert len(tile.calls) <= LIMITS["tile"], str(tile)


def test_from_the_broker_to_the_page(tmp_path: Path) -> None:
    """Decoded, in the read model, and every page that shows it knows."""
    online = [
        event("device.online", {"continuous": True, "serial": serial}, seq) for seq, serial in ((1, "1"), (2, "2"))
    ]
    passed, written, changed = of_the_page(tmp_path, online[1:], online[:1])
    assert "events/bac-1/wheel" in changed
    assert len(passed.calls) <= LIMITS["console"], str(passed)
    assert passed.times("decode_wire") == passed.times("decode_data") == 1
    assert written.times("Fairness._online") == 2
    assert written.times("decode_wire") == written.times("decode_data") == 0
