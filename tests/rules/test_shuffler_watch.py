"""The watch over an automatic shuffler: its state is bounded, and a loss is no breach."""

from hypothesis import given, strategies as st

from protocols.contract.events import (
    BetsClosed,
    CardDamaged,
    CardDrawn,
    CardJammed,
    CardsLoaded,
    CardsReturned,
    DeckChecked,
    DeviceOnline,
    Event,
    EventsMissed,
    JamCleared,
    SupervisorKeyed,
    TableClosed,
)
from rules.games.shuffler_watch import CODES, HEARD, UNKNOWN, Watched, watch

EVENTS: tuple[Event, ...] = (
    *(BetsClosed(), CardDrawn("9D"), CardDamaged(), CardJammed("infeed"), JamCleared("infeed"), TableClosed()),
    *(CardsLoaded(156, 1), CardsLoaded(156, 2), CardsLoaded(1), CardsReturned(), CardsReturned(2)),
    *(DeckChecked(312, 312, good=True), DeckChecked(312, 311, good=False), SupervisorKeyed(present=True)),
    *(SupervisorKeyed(present=False), EventsMissed(1), DeviceOnline(continuous=False), DeviceOnline(continuous=True)),
)
NIGHTS = st.lists(st.sampled_from(EVENTS), max_size=40)


def breaches(events: list[Event], state: Watched | None = None) -> tuple[Watched, list[str]]:
    now, found = state or Watched(), list[str]()
    for event in events:
        now, said = watch(now, event)
        found += [code for code, _ in said]
    return now, found


def test_the_watch_hears_every_event_that_it_knows() -> None:
    assert {type(event) for event in EVENTS} == HEARD


@given(NIGHTS)
def test_every_breach_has_a_code_and_the_cards_outside_are_never_negative(events: list[Event]) -> None:
    state, found = breaches(events)
    assert set(found) <= set(CODES)
    assert state.out >= UNKNOWN


def test_every_code_is_said() -> None:
    key_on, key_off = SupervisorKeyed(present=True), SupervisorKeyed(present=False)
    loaded: list[Event] = [key_on, CardsLoaded(156, 1), CardsLoaded(156, 2), key_off, BetsClosed()]
    nights: list[list[Event]] = [
        [CardsLoaded(156, 1), BetsClosed()],
        [*loaded, CardsLoaded(156, 1)],
        [*loaded, CardDamaged(), CardDrawn("9D"), CardJammed("shoe"), JamCleared("shoe"), CardsReturned(9)],
        [*loaded, DeckChecked(312, 311, good=False), TableClosed(), BetsClosed()],
        [*loaded, TableClosed(), *loaded],
    ]
    assert {code for night in nights for code in breaches(night)[1]} == set(CODES)


@given(NIGHTS, st.sampled_from(EVENTS))
def test_a_loss_is_no_breach(events: list[Event], event: Event) -> None:
    """After a loss no person, packet or card is reported missing."""
    state, _ = breaches([*events, EventsMissed(1)])
    _, found = breaches([event], state)
    explained = {"loaded_unattended", "checked_unattended", "jam_unattended", "damaged_card_not_replaced"}
    explained |= {"loaded_in_one_packet", "too_many_cards_returned", "deck_not_checked", "played_after_closing"}
    assert not explained & set(found)


KEY_ON = SupervisorKeyed(present=True)


def test_each_night_begins_with_two_packets() -> None:
    night: list[Event] = [KEY_ON, CardsLoaded(156, 1), CardsLoaded(156, 2), BetsClosed(), TableClosed()]
    for packets, said in ((1, ["loaded_in_one_packet"]), (2, []), (3, [])):
        loaded: list[Event] = [CardsLoaded(100, number) for number in range(1, packets + 1)]
        assert breaches([*night, DeckChecked(312, 312, good=True), *loaded, BetsClosed()])[1] == said
        assert breaches([KEY_ON, *loaded, BetsClosed()])[1] == said


def test_a_shuffler_that_is_met_for_the_first_time_proves_no_loss() -> None:
    met = DeviceOnline(continuous=False)
    assert breaches([met, KEY_ON, CardsLoaded(156, 1), BetsClosed()])[1] == ["loaded_in_one_packet"]
    assert breaches([KEY_ON, CardsLoaded(156, 1), met, BetsClosed()])[1] == []


def test_no_more_cards_come_back_than_are_outside() -> None:
    out: list[Event] = [KEY_ON, CardsLoaded(156, 1), CardsLoaded(156, 2), *[CardDrawn("9D")] * 3]
    many = ["too_many_cards_returned"]
    for counts, said in (((3,), []), ((4,), many), ((2, 1), []), ((2, 2), many), ((0, 1), many)):
        assert breaches([*out, *map(CardsReturned, counts)])[1] == said, counts
    again: list[Event] = [*out, CardsReturned(9), CardDrawn("9D")]
    assert breaches([*again, CardsReturned(1)])[1] == many
    assert breaches([*again, CardsReturned(2)])[1] == many * 2
    assert breaches([*out, EventsMissed(1), CardsReturned(1), CardsReturned(99)])[1] == []
