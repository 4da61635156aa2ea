"""The story of a device's day: losses and faults with their ends, what repeats as one line, no commands."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st

from daemon.console.site.story import CLOSE, MOST, Episode, episodes, recent
from daemon.views import Change

T0 = datetime(2026, 11, 20, 14, 2, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def changes(*lines: tuple[float, str, str]) -> list[Change]:
    return [Change(at(seconds), f"device.{kind}", text) for seconds, kind, text in lines]


def test_a_loss_of_the_link_ends_when_the_device_is_online_again() -> None:
    found = episodes(changes((0, "offline", "cable"), (12, "online", "Billy III")))
    assert found == [Episode("offline", T0, at(12), text="cable", seconds=12)]


def test_a_fault_ends_by_its_own_code() -> None:
    lines = (
        (0, "faulted", "shoe.jam · cards are stuck"),
        (5, "faulted", "shoe.door · open"),
        (9, "recovered", "shoe.jam"),
    )
    assert episodes(changes(*lines)) == [
        Episode("fault", T0, at(9), "shoe.jam", "cards are stuck", seconds=9),
        Episode("fault", at(5), None, "shoe.door", "open"),
    ]


def test_commands_and_their_answers_are_no_part_of_the_story() -> None:
    assert episodes(changes((0, "commanded", "trace · done"), (1, "commanded", "self-test · failed"))) == []


def test_a_device_that_is_connected_anew_is_told() -> None:
    assert episodes(changes((0, "online", ""))) == [Episode("online", T0, T0)]


def test_what_repeats_is_one_line_with_a_count() -> None:
    lost = [(n * 60.0, kind, "") for n in range(3) for kind in ("offline",)]
    back = [(n * 60.0 + 4, "online", "") for n in range(3)]
    [line] = recent(episodes(changes(*lost, *back)), T0)
    assert (line.times, line.seconds, line.began, line.ended) == (3, 12, T0, at(124))
    later = CLOSE.total_seconds() + 200
    two = recent(episodes(changes(*lost, *back, (later, "offline", ""))), T0)
    assert [(one.times, one.ended) for one in two] == [(1, None), (3, at(124))]


def test_a_story_begins_with_what_was_still_open_then() -> None:
    found = episodes(changes((0, "offline", ""), (10, "online", ""), (20, "faulted", "a.b · c")))
    assert [one.kind for one in recent(found, at(11))] == ["fault"]
    assert [one.kind for one in recent(found, at(5))] == ["fault", "offline"]
    assert [one.kind for one in recent(found, at(1e6))] == ["fault"]


KINDS = st.sampled_from(("offline", "online", "faulted", "recovered", "commanded", "else"))
LINES = st.tuples(st.floats(0, 1e5), KINDS, st.sampled_from(("", "a.b · x", "a.b", "c · y")))


@given(st.lists(LINES, max_size=200), st.floats(0, 1e5))
def test_any_history_is_told_in_bounds_and_in_order(lines: list[tuple[float, str, str]], since: float) -> None:
    found = episodes(changes(*lines))
    shown = recent(found, at(since))
    assert len(shown) <= MOST
    assert all(one.ended is None or one.ended >= one.began for one in shown)
    assert all(one.ended is None or one.ended >= at(since) for one in shown)
    kinds = [kind for _, kind, _ in lines]
    losses = sum(one.times for one in recent(found, at(-1)) if one.kind == "offline")
    assert losses <= kinds.count("offline")
