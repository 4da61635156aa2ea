"""The duties at a table with an automatic shuffler: loading, damaged cards, jams, returned cards, the count.

Called by `blackjack_watched.py` with each event of `HEARD`; `watch` returns the breaches that it shows. It is
independent of the game: a ruleset has an article for each code of `CODES`. After a loss of events, a breach that the
loss may explain is not reported.
"""

from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

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
from protocols.contract.reasons import Reason, say

HEARD: Final[frozenset[type[Event]]] = frozenset(
    (
        *(CardsLoaded, CardDamaged, CardJammed, JamCleared, CardsReturned, DeckChecked, SupervisorKeyed, TableClosed),
        *(CardDrawn, BetsClosed, EventsMissed, DeviceOnline),
    )
)
CODES: Final = (
    *("loaded_unattended", "loaded_in_one_packet", "loaded_again", "card_damaged", "damaged_card_not_replaced"),
    *("jam_unattended", "too_many_cards_returned", "checked_before_closing", "checked_unattended", "deck_wrong"),
    *("deck_not_checked", "played_after_closing"),
)
UNKNOWN: Final = -1


class Watched(Struct, frozen=True, forbid_unknown_fields=True):
    """A table with its shuffler. `supervisor`: the key is on; `came`: it was on since the last damage or jam.

    `packets`: loaded since the table was closed; 0: none reported. `play`: "begun" once a round was played since.
    `out`: cards that left the shuffler and did not go back, UNKNOWN before the first loading and after a loss.
    `unchecked`: the table was closed and the cards not counted since.
    """

    supervisor: Literal["on", "off", "unknown"] = "off"
    came: bool = False
    packets: int = 0
    play: Literal["not_begun", "begun", "closed"] = "not_begun"
    damaged: bool = False
    jammed: bool = False
    out: int = UNKNOWN
    unchecked: bool = False


NEW: Final = Watched()
Breach: TypeAlias = tuple[str, Reason]
_NONE: Final[tuple[Breach, ...]] = ()


def _missed(state: Watched) -> Watched:
    """The state after a loss: a supervisor, packets, returned cards or a closing may have been missed."""
    state = replace(state, supervisor="unknown", came=True, packets=2, out=UNKNOWN)
    return replace(state, play="not_begun", unchecked=False)


def watch(state: Watched, event: Event) -> tuple[Watched, tuple[Breach, ...]]:
    """The next state, and the breaches that the event shows."""
    match event:
        case CardDrawn():
            return _drawn(state)
        case BetsClosed():
            return _played(state)
        case SupervisorKeyed(present=present):
            return replace(state, supervisor="on" if present else "off", came=state.came or present), _NONE
        case CardsLoaded(packet=packet):
            return _loaded(state, packet)
        case CardDamaged():
            state = replace(state, damaged=True, came=state.supervisor != "off")
            return state, (("card_damaged", say("card_damaged")),)
        case CardJammed():
            return replace(state, jammed=True, came=state.supervisor != "off"), _NONE
        case JamCleared():
            alone = state.jammed and not state.came
            return replace(state, jammed=False), (("jam_unattended", say("jam_unattended")),) if alone else _NONE
        case CardsReturned(count=count):
            return _returned(state, count)
        case TableClosed():
            state = replace(state, play="closed", unchecked=True, packets=0, damaged=False)
            return state, _NONE
        case DeckChecked() as counted:
            return _checked(state, counted)
        case EventsMissed():
            return _missed(state), _NONE
        case DeviceOnline(continuous=False) if state != NEW:  # the first contact with a device proves no loss
            return _missed(state), _NONE
        case _:
            return state, _NONE


def _drawn(state: Watched) -> tuple[Watched, tuple[Breach, ...]]:
    out = state.out + 1 if state.out != UNKNOWN else UNKNOWN
    if state.damaged and not state.came:
        text = say("damaged_card_not_replaced")
        return replace(state, out=out, damaged=False), (("damaged_card_not_replaced", text),)
    return replace(state, out=out), _NONE


def _played(state: Watched) -> tuple[Watched, tuple[Breach, ...]]:
    """The bell of a round."""
    breaches = _NONE
    if state.play == "closed":
        breaches += (("played_after_closing", say("played_after_closing")),)
    elif state.play == "not_begun" and state.packets == 1:
        breaches += (("loaded_in_one_packet", say("loaded_in_one_packet")),)
    return replace(state, play="begun"), breaches


def _loaded(state: Watched, packet: int) -> tuple[Watched, tuple[Breach, ...]]:
    breaches = _NONE
    if state.supervisor == "off":
        breaches += (("loaded_unattended", say("loaded_unattended")),)
    if state.damaged:  # the replacement of the damaged card
        return replace(state, damaged=False), breaches
    if state.unchecked:
        breaches += (("deck_not_checked", say("deck_not_checked")),)
    if state.play == "begun":
        return state, (*breaches, ("loaded_again", say("loaded_again")))
    packets = max(packet, state.packets + 1)
    return replace(state, packets=packets, play="not_begun", unchecked=False, out=0), breaches


def _returned(state: Watched, count: int) -> tuple[Watched, tuple[Breach, ...]]:
    """Cards of one or of several rounds go back; `count` is 0 where the device does not report how many."""
    breaches = _NONE
    if count and state.out != UNKNOWN and count > state.out:
        text = say("too_many_cards_returned", count=count, out=state.out)
        breaches = (("too_many_cards_returned", text),)
    out = UNKNOWN if state.out == UNKNOWN else max(state.out - count, 0) if count else 0
    return replace(state, out=out), breaches


def _checked(state: Watched, counted: DeckChecked) -> tuple[Watched, tuple[Breach, ...]]:
    breaches = _NONE
    if state.play == "begun":
        breaches += (("checked_before_closing", say("checked_before_closing")),)
    if state.supervisor == "off":
        breaches += (("checked_unattended", say("checked_unattended")),)
    if not counted.good:
        text = say("deck_wrong", counted=counted.counted, expected=counted.expected)
        breaches += (("deck_wrong", text),)
    return replace(state, unchecked=False), breaches
