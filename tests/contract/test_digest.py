"""The digest of an event is written in positions, so each version computes the same one."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from hashlib import blake2b

from hypothesis import given, strategies as st

from protocols.contract.topics import DIGEST_SIZE, EARLIEST, LATEST, digest_of

ZONES = st.sampled_from((UTC, timezone(timedelta(0)), timezone(timedelta(hours=8))))
TIMES = st.datetimes(EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None))


@given(st.text(max_size=20), st.text(max_size=20), TIMES, ZONES, st.binary(max_size=40))
def test_the_digest_is_over_lengths_texts_and_the_time_as_iso_8601(
    device: str, type_: str, at: datetime, zone: tzinfo, data: bytes
) -> None:
    device, time = device.replace("/", "-"), at.replace(tzinfo=zone)
    what = "".join(f"{len(text)}:{text}" for text in (device, type_, time.isoformat())).encode() + data
    assert digest_of(f"felt/1/bench/{device}", type_, time, data) == blake2b(what, digest_size=DIGEST_SIZE).digest()


def test_the_digest_of_versions_before() -> None:
    whole, fraction = datetime(2026, 11, 20, 20, 0, 1, tzinfo=UTC), datetime(2026, 11, 20, 20, 0, 1, 250, tzinfo=UTC)
    digests = [digest_of("a/shoe-1", "card.drawn", time, b'{"card":"AS"}').hex() for time in (whole, fraction)]
    assert digests == ["00d79a8054398c15125d876887ab2aab", "5b2d9969aeb6f35316a6f516d7f29124"]
