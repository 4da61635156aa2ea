"""The events of a table, in the casino's words and the past tense.

A closed union of frozen structs; `match` over it is exhaustive. Drivers translate a vendor's messages into events;
rulesets read only events. The type name on the wire is the struct's tag; the fields are the event's `data`.
Cards are rank then suit (`AS TD 9H KC`, T is ten); pockets are text because some wheels have more than one zero.
"""

from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from protocols.plain_errors import plain

_CARD, _CARD_WORDS = "^[A2-9TJQK][SHDC]$(?!\\n)", "a card is rank then suit, T is ten: AS TD 9H KC"
_POCKET, _POCKET_WORDS = "^(0{1,4}|[1-9]|[12][0-9]|3[0-6])$(?!\\n)", "a pocket is 0 to 36, or 00, 000, 0000"
Card: TypeAlias = Annotated[str, Meta(pattern=_CARD, description=_CARD_WORDS)]
Pocket: TypeAlias = Annotated[str, Meta(pattern=_POCKET, description=_POCKET_WORDS)]
Face: TypeAlias = Annotated[int, Meta(ge=1, le=6)]
Seat: TypeAlias = Annotated[int, Meta(ge=1, le=99)]
MOST = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly. Larger counts are refused."""
LONGEST_TEXT = 2000
"""Maximum characters of a text in an event. Readers keep some hundred events in memory."""
Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Amount: TypeAlias = Annotated[int, Meta(ge=1, le=MOST, description="minor units")]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=MOST)]
Number: TypeAlias = Annotated[int, Meta(ge=0, le=MOST)]
RoundName: TypeAlias = Annotated[str, Meta(max_length=200, description="the id of a round; empty: not stated")]
LONGEST_NAME = 64
MAX_PARTS = 16
"""Maximum messages in which one person states the bets on a table."""
RequestId: TypeAlias = Annotated[
    str,
    Meta(
        max_length=LONGEST_NAME,
        pattern="^[A-Za-z0-9._:-]+$(?!\\n)",
        description="chosen by the terminal, unique for it: letters, digits and . _ : -",
    ),
]
EntryId: TypeAlias = Annotated[
    str, Meta(pattern="^[a-f0-9]{32}$(?!\\n)", description="32 random hexadecimal digits, chosen by the console")
]
TerminalId: TypeAlias = Annotated[
    str, Meta(pattern="^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$(?!\\n)", description="a-z 0-9 -")
]
Turn: TypeAlias = Literal["clockwise", "anticlockwise"]
Severity: TypeAlias = Literal["warning", "error"]


class _Event(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True):
    """Fields of every event. The type name is the struct's tag.

    `overtaken`: the event is late. By the age that its device gives, it happened this many ms before an event that
    another device of the table had already reported; 0: in order. `age_ms`: ms between the event and its arrival, where
    the device reports its age; 0: reported at once.
    """

    overtaken: Number = 0
    age_ms: Number = 0


# ---- cards


class ShoeStarted(_Event, frozen=True, tag="shoe.started"):
    """A freshly shuffled shoe is in use. `decks` 0: unknown."""

    decks: Annotated[int, Meta(ge=0, le=12)] = 0


class CardDrawn(_Event, frozen=True, tag="card.drawn"):
    """One card left the shoe. `face`: face up or down, where the device detects it.

    `operation`: the shoe's text for what it was doing, where it reports it.
    """

    card: Card
    face: Literal["up", "down"] | None = None
    operation: Text = ""


class CardUnreadable(_Event, frozen=True, tag="card.unreadable"):
    """A card left the shoe, or may have left it, and could not be read."""


class CutCardDrawn(_Event, frozen=True, tag="cut_card.drawn"):
    """The white card came out of the shoe."""


class ShoeEmptied(_Event, frozen=True, tag="shoe.emptied"):
    """No card is left in the shoe."""


class CardsReturned(_Event, frozen=True, tag="cards.returned"):
    """`count` cards went back into a continuous shuffler."""

    count: Number = 0


class CardDamaged(_Event, frozen=True, tag="card.damaged"):
    """A card is torn, bent or marked; `card` where it is known which."""

    card: Card | None = None


class CardsLoaded(_Event, frozen=True, tag="cards.loaded"):
    """`count` cards were put into a shuffler, as packet number `packet` of this loading."""

    count: Number = 0
    packet: Number = 0


class ShuffleStarted(_Event, frozen=True, tag="shuffle.started"):
    """A shuffler began to shuffle; 0: the number of decks or cards is unknown."""

    decks: Annotated[int, Meta(ge=0, le=12)] = 0
    cards: Number = 0


class ShuffleFinished(_Event, frozen=True, tag="shuffle.finished"):
    """Shuffled cards are ready. `verified`: the machine found every card of every deck once."""

    decks: Annotated[int, Meta(ge=0, le=12)] = 0
    cards: Number = 0
    verified: bool = False


class ShuffleFailed(_Event, frozen=True, tag="shuffle.failed"):
    """The shuffle failed; its cards may not be dealt."""

    decks: Annotated[int, Meta(ge=0, le=12)] = 0
    cards: Number = 0
    reason: Text = ""


class HandDispensed(_Event, frozen=True, tag="hand.dispensed"):
    """A shuffler gave out a packet of `cards` cards, face down."""

    cards: Count


class DeckMiscounted(_Event, frozen=True, tag="deck.miscounted"):
    """A count of the deck is wrong. A count is evidence, not proof: machines miscount too.

    `missing` and `extra` name the cards where the machine reads them.
    """

    expected: Number
    counted: Number
    missing: tuple[Card, ...] = ()
    extra: tuple[Card, ...] = ()


class CardJammed(_Event, frozen=True, tag="card.jammed"):
    """Cards stick in the machine, `where`: infeed, carousel, outfeed or shoe."""

    where: Text


class JamCleared(_Event, frozen=True, tag="jam.cleared"):
    """The jam at `where` is over."""

    where: Text


class HoleCardPeeked(_Event, frozen=True, tag="hole_card.peeked"):
    """The peek reader looked at the dealer's hole card and reports only whether it is blackjack."""

    blackjack: bool


class DeckChecked(_Event, frozen=True, tag="deck.checked"):
    """A shuffler counted a whole deck. `good`: the count found the expected cards; evidence, not proof.

    `deck`: number of the deck; 0 where the machine has one deck or does not report it. `wrong`: counts of this deck
    that were not good since it was loaded, this one included.
    """

    expected: Number
    counted: Number
    good: bool
    deck: Number = 0
    wrong: Number = 0


# ---- table


class BetsOpened(_Event, frozen=True, tag="bets.opened"):
    """Players may bet."""


class BetsClosed(_Event, frozen=True, tag="bets.closed"):
    """The closing bell: no more bets."""


class RoundVoided(_Event, frozen=True, tag="round.voided"):
    """The dealer or supervisor declared a round void: `round`, or if empty the round that the law's text means."""

    reason: Text = ""
    round: RoundName = ""


class RoundPaid(_Event, frozen=True, tag="round.paid"):
    """Losing bets were collected and winners paid. `round` names the round where it is known."""

    round: RoundName = ""


class RoundDemo(_Event, frozen=True, tag="round.demo"):
    """The next round is a demonstration without bets."""


class DealCorrected(_Event, frozen=True, tag="deal.corrected"):
    """A dealing error was corrected. `hands`: the hands now, e.g. {"player": ["9D", "KC"], "banker": ["AS", "4H"]}.

    `round` names the round of the hands where it is known.
    """

    hands: dict[str, tuple[Card, ...]]
    round: RoundName = ""


class SeatOpened(_Event, frozen=True, tag="seat.opened"):
    """A player joined at `seat`."""

    seat: Seat


class SeatClosed(_Event, frozen=True, tag="seat.closed"):
    """The player at `seat` left."""

    seat: Seat


class SeatActed(_Event, frozen=True, tag="seat.acted"):
    """A player's decision: `action` in the game's terms (stand, hit, split, raise, fold …), `amount` minor units."""

    seat: Seat
    action: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,31}$")]
    hand: Count = 1
    amount: Number = 0


PlayerAction: TypeAlias = Literal["fold", "check", "call", "bet", "raise", "all_in"]


class PlayerActed(_Event, frozen=True, tag="player.acted"):
    """A player's decision at the terminal of the seat: `action`, with `amount` minor units that cross the line.

    `request`, `terminal`: of the terminal that asked for it. `round`: the round that it named; in another round, out of
    turn, or where it would be a mistake, it is not taken.
    """

    seat: Seat
    action: PlayerAction
    amount: Number = 0
    request: RequestId = ""
    terminal: TerminalId = ""
    round: RoundName = ""


class CardExposed(_Event, frozen=True, tag="card.exposed"):
    """A card that should be face down was seen. `hand` as in `deal.corrected`; `card` where it is known."""

    hand: Text
    card: Card | None = None
    round: RoundName = ""


class DealerRelieved(_Event, frozen=True, tag="dealer.relieved"):
    """Another dealer took over."""


class SupervisorKeyed(_Event, frozen=True, tag="supervisor.keyed"):
    """The supervisor's key was turned on (`present`) or off."""

    present: bool


class TableOpened(_Event, frozen=True, tag="table.opened"):
    """`by` opened the table. Each bet is from `minimum` to `maximum` minor units; a `maximum` of 0 is none.

    The edge writes the limits into each bet that is laid from now on.
    """

    by: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    minimum: Number = 0
    maximum: Number = 0


class LimitsChanged(_Event, frozen=True, tag="table.limits_changed"):
    """`by` changed the limits of the bets. Bets that were laid before keep theirs. The fields are those of
    `table.opened`.
    """

    by: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    minimum: Number = 0
    maximum: Number = 0


class TableClosed(_Event, frozen=True, tag="table.closed"):
    """The table closes: no further round is played until it opens again.

    `by`: the person who closed it at the console. The edge then marks each bet until somebody opens the table. A
    hardware console has no sign-in and cannot open the table again: its closing leaves the bets as they are.
    """

    by: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""


class TableCounted(_Event, frozen=True, tag="table.counted"):
    """Two people, `by` and `second`, entered chips or money of the table: `amount` minor units.

    `kind`: the chips at the `opening` or `closing` of the table, a `fill` (chips brought to it), a `credit` (chips
    taken from it), or the `drop` (what the drop box held). `entry` names it; `reverses` names an earlier one that it
    takes back, with the same kind and amount: an entry is never changed.
    """

    kind: Literal["opening", "closing", "fill", "credit", "drop"]
    amount: Number
    by: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    second: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    entry: EntryId
    reverses: Annotated[str, Meta(pattern="^([a-f0-9]{32})?$(?!\\n)", description="an entry, or nothing")] = ""


class HandPassed(_Event, frozen=True, tag="hand.passed"):
    """The bank, the dice or the button went to `seat`; 0 where the seat is unknown."""

    seat: Annotated[int, Meta(ge=0, le=99)] = 0


class LaidBet(msgspec.Struct, frozen=True):
    """A bet that lies on the table."""

    seat: Seat
    bet: Text
    amount: Amount


class SeriesStated(_Event, frozen=True, tag="series.stated"):
    """A supervisor, `by` name, states what lies on the table after lost events: the `point` (0: none), and all `bets`.

    It counts when a second supervisor states the same. `round`: the round that waits. More bets than one message of the
    console holds come in `parts`, each with some of the bets; the statement counts with the last part.
    """

    by: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    point: Annotated[int, Meta(ge=0, le=12)] = 0
    bets: Annotated[tuple[LaidBet, ...], Meta(max_length=256)] = ()
    round: RoundName = ""
    part: Annotated[int, Meta(ge=1, le=MAX_PARTS)] = 1
    parts: Annotated[int, Meta(ge=1, le=MAX_PARTS)] = 1


class LampsLit(_Event, frozen=True, tag="lamps.lit"):
    """The lamps that are lit now, by their names on the layout. Empty: all are dark."""

    lamps: tuple[Text, ...] = ()


class WagerPlaced(_Event, frozen=True, tag="wager.placed"):
    """`amount` minor units were put on `bet` from `seat`. `terminal`: the betting terminal; `request`: the id of its
    request.

    `pool_closed`: the bet is on a jackpot whose betting is closed, because the edge lost the owner of the pool. It is
    not taken. `round`: the round that the terminal named; in another round the bet is not taken. `table_closed`: the
    table was closed, so the bet is not taken. `minimum`, `maximum`: the limits of the table when it was laid; 0: none.
    """

    seat: Seat
    bet: Text
    amount: Amount
    request: RequestId = ""
    terminal: TerminalId = ""
    pool_closed: bool = False
    round: RoundName = ""
    table_closed: bool = False
    minimum: Number = 0
    maximum: Number = 0


class WagerWithdrawn(_Event, frozen=True, tag="wager.withdrawn"):
    """`amount` minor units were taken back from `bet`; 0 is all of it. The other fields are those of `wager.placed`."""

    seat: Seat
    bet: Text
    amount: Number = 0
    request: RequestId = ""
    terminal: TerminalId = ""
    round: RoundName = ""


# ---- dice


class DiceCovered(_Event, frozen=True, tag="dice.covered"):
    """The dome is over the dice and its clasps are shut."""


class DiceAgitated(_Event, frozen=True, tag="dice.agitated"):
    """The dice were shaken: `cycles` pulls of the lever, or one electronic agitation."""

    mode: Literal["lever", "electronic"]
    cycles: Count = 1


class DiceUncovered(_Event, frozen=True, tag="dice.uncovered"):
    """The dome was lifted."""


class DiceRead(_Event, frozen=True, tag="dice.read"):
    """The dice as read. `stacked` counts dice on or under another, `leaning` tilted ones; the faces are then unsafe."""

    faces: tuple[Face, ...]
    stacked: Number = 0
    leaning: Number = 0


class DiceThrown(_Event, frozen=True, tag="dice.thrown"):
    """Dice thrown by hand came to rest. `reason`: why the throw is not valid."""

    faces: tuple[Face, ...]
    valid: bool = True
    reason: Text = ""


class DiceDisturbed(_Event, frozen=True, tag="dice.disturbed"):
    """The dice were touched, or moved without a whole shake, before the result was announced."""


class DiceReplaced(_Event, frozen=True, tag="dice.replaced"):
    """Another set of dice is in play."""


class DiceSeized(_Event, frozen=True, tag="dice.seized"):
    """The set was taken away as suspect."""


# ---- fantan


class ButtonsSeparated(_Event, frozen=True, tag="buttons.separated"):
    """A heap of buttons was set apart and covered."""


class ButtonsUncovered(_Event, frozen=True, tag="buttons.uncovered"):
    """The cup was lifted before the count was requested; the buttons were seen."""


class ButtonsCounted(_Event, frozen=True, tag="buttons.counted"):
    """The count of whole buttons under the cover. `fragments`: pieces of broken buttons, not included in `count`."""

    count: Count
    fragments: Number = 0


# ---- roulette


class WheelStarted(_Event, frozen=True, tag="wheel.started"):
    """The wheel turns before a game."""


class WheelStopped(_Event, frozen=True, tag="wheel.stopped"):
    """The table is closed: the wheel is idle."""


class SpinStarted(_Event, frozen=True, tag="spin.started"):
    """A new spin begins: the wheel opens the bets and locates its ball. `number` is the wheel's own spin counter."""

    number: Number = 0


class BallLaunched(_Event, frozen=True, tag="ball.launched"):
    """The ball runs in the rim. `direction` is the ball's, `rotor` the wheel's; they should be opposite."""

    direction: Turn
    rotor: Turn


class BallSettling(_Event, frozen=True, tag="ball.settling"):
    """The ball is slower than the no-more-bets threshold."""


class BallLanded(_Event, frozen=True, tag="ball.landed"):
    """The ball rests in `pocket`."""

    pocket: Pocket


class SpinVoided(_Event, frozen=True, tag="spin.voided"):
    """The wheel or its controller declared this spin void."""

    reason: Text


class SpinMissed(_Event, frozen=True, tag="spin.missed"):
    """The wheel's counter proves that `count` spins ended without being seen."""

    count: Count


class BallReplaced(_Event, frozen=True, tag="ball.replaced"):
    """The ball was put back by hand, into `pocket` where it is known."""

    pocket: Pocket | None = None


class BallChanged(_Event, frozen=True, tag="ball.changed"):
    """Another ball is in play."""


class BonusDrawn(_Event, frozen=True, tag="bonus.drawn"):
    """The wheel drew a bonus: `kind` 1 to 6 and its `value`, as the vendor numbers them."""

    kind: Annotated[int, Meta(ge=1, le=6)]
    value: Number


# ---- machines


class MachineMeters(_Event, frozen=True, tag="machine.meters"):
    """A machine's meters by name, in credits or minor units according to its denomination."""

    meters: dict[str, Annotated[int, Meta(ge=-MOST, le=MOST)]]


class MachineIdentified(_Event, frozen=True, tag="machine.identified"):
    """A machine's report of its approved characteristics, at the first contact and after each change.

    `return_bp`: the theoretical return in hundredths of a percent; `credit`, `max_bet`: minor units; `signature`: of
    its program, for the seed in the request; 0 or empty: not reported. `differs`: names of those that differ from the
    configuration.
    """

    serial: Text = ""
    game: Text = ""
    paytable: Text = ""
    return_bp: Number = 0
    credit: Number = 0
    max_bet: Number = 0
    options: Text = ""
    signature: Text = ""
    differs: tuple[Text, ...] = ()


class MachineUnreliable(_Event, frozen=True, tag="machine.unreliable"):
    """A machine's meters or program are in doubt: its memory was cleared, lost data or failed, a meter ran backwards,
    or the checksum of its program is not as it was."""

    why: Literal["cleared", "memory", "backwards", "program"]
    text: Text = ""


class MachineApproved(_Event, frozen=True, tag="machine.approved"):
    """A supervisor, `by` name, approves a machine as it is now. It counts when a second supervisor approves it, too.

    `round`: the period that waits.
    """

    by: Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
    round: RoundName = ""


class MachineReported(_Event, frozen=True, tag="machine.reported"):
    """A machine reported a condition that is no fault. `code` is the number in its protocol."""

    code: Text
    text: Text


# ---- jackpot


Pool: TypeAlias = Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$(?!\\n)", description="a-z 0-9 -")]


class JackpotContributed(_Event, frozen=True, tag="jackpot.contributed"):
    """`amount` minor units were staked on the jackpot `pool` from `seat` (0: unknown). `pool_closed`: as in
    `wager.placed`.
    """

    pool: Pool
    amount: Amount
    seat: Annotated[int, Meta(ge=0, le=99)] = 0
    pool_closed: bool = False


class JackpotWon(_Event, frozen=True, tag="jackpot.won"):
    """A jackpot was won. `amount`: minor units where the device reports them; `level` 1 is the highest.

    `shown`: the amount that was sent to the device's display; the latest one where it reports another, 0 for none.
    """

    pool: Pool
    level: Annotated[int, Meta(ge=0, le=32)] = 0
    seat: Annotated[int, Meta(ge=0, le=99)] = 0
    amount: Number = 0
    shown: Number = 0


class JackpotPaid(_Event, frozen=True, tag="jackpot.paid"):
    """A jackpot was paid by hand or by the machine."""

    pool: Pool
    level: Annotated[int, Meta(ge=0, le=32)] = 0
    seat: Annotated[int, Meta(ge=0, le=99)] = 0
    amount: Number = 0


class JackpotReset(_Event, frozen=True, tag="jackpot.reset"):
    """A jackpot starts again at `amount` minor units."""

    pool: Pool
    level: Annotated[int, Meta(ge=0, le=32)] = 0
    amount: Number = 0


class DisplayShown(_Event, frozen=True, tag="display.shown"):
    """A display shows `text` now. `confirmed`: read back from the display, not only sent to it."""

    text: Text
    confirmed: bool = False


# ---- devices


class DeviceOnline(_Event, frozen=True, tag="device.online"):
    """The device is connected and answers. `continuous`: it is proven that no event was lost since its last one.

    Without that proof an open round that depends on this device may be incomplete.
    """

    continuous: bool
    model: Text = ""
    serial: Text = ""
    firmware: Text = ""


class DeviceOffline(_Event, frozen=True, tag="device.offline"):
    """The connection to the device is lost."""

    reason: Text


class DeviceFaulted(_Event, frozen=True, tag="device.faulted"):
    """A fault began. `code` is stable, `remedy` is what a technician should try."""

    code: Text
    text: Text
    severity: Severity
    remedy: Text


class DeviceRecovered(_Event, frozen=True, tag="device.recovered"):
    """The fault `code` is over."""

    code: Text


class EventsMissed(_Event, frozen=True, tag="events.missed"):
    """The device's own counter proves that `count` of its events are lost."""

    count: Count


class DeviceCommanded(_Event, frozen=True, tag="device.commanded"):
    """The device received a command. `id` is the id of the request, `status` the outcome, `text` the reason."""

    command: Text
    id: Text
    status: Literal["done", "refused", "failed"]
    text: Text = ""


Event: TypeAlias = (
    ShoeStarted
    | CardDrawn
    | CardUnreadable
    | CutCardDrawn
    | ShoeEmptied
    | CardsReturned
    | CardDamaged
    | CardsLoaded
    | ShuffleStarted
    | ShuffleFinished
    | ShuffleFailed
    | HandDispensed
    | DeckMiscounted
    | CardJammed
    | JamCleared
    | HoleCardPeeked
    | DeckChecked
    | BetsOpened
    | BetsClosed
    | RoundVoided
    | RoundPaid
    | RoundDemo
    | DealCorrected
    | SeatOpened
    | SeatClosed
    | SeatActed
    | PlayerActed
    | CardExposed
    | DealerRelieved
    | SupervisorKeyed
    | TableOpened
    | LimitsChanged
    | TableClosed
    | TableCounted
    | HandPassed
    | SeriesStated
    | LampsLit
    | WagerPlaced
    | WagerWithdrawn
    | DiceCovered
    | DiceAgitated
    | DiceUncovered
    | DiceRead
    | DiceThrown
    | DiceDisturbed
    | DiceReplaced
    | DiceSeized
    | ButtonsSeparated
    | ButtonsUncovered
    | ButtonsCounted
    | WheelStarted
    | WheelStopped
    | SpinStarted
    | BallLaunched
    | BallSettling
    | BallLanded
    | SpinVoided
    | SpinMissed
    | BallReplaced
    | BallChanged
    | BonusDrawn
    | MachineMeters
    | MachineIdentified
    | MachineUnreliable
    | MachineApproved
    | MachineReported
    | JackpotContributed
    | JackpotWon
    | JackpotPaid
    | JackpotReset
    | DisplayShown
    | DeviceOnline
    | DeviceOffline
    | DeviceFaulted
    | DeviceRecovered
    | EventsMissed
    | DeviceCommanded
)
Told: TypeAlias = type[Event] | Event
"""What a device can report: any event of a type, or such an event alone."""


def type_of(event: Event) -> str:
    """The event's type name, e.g. "card.drawn"."""
    return str(event.__struct_config__.tag)


ASIDE: frozenset[type[Event]] = frozenset(
    (
        DeviceOnline,
        DeviceOffline,
        DeviceFaulted,
        DeviceRecovered,
        DeviceCommanded,
        DisplayShown,
        MachineMeters,
        MachineIdentified,
        MachineUnreliable,
        MachineApproved,
        MachineReported,
        JackpotContributed,
        JackpotWon,
        JackpotPaid,
        JackpotReset,
        SupervisorKeyed,
        DealerRelieved,
        TableOpened,
        LimitsChanged,
        TableClosed,
        TableCounted,
        BallChanged,
        CardDamaged,
        CardsLoaded,
        ShuffleStarted,
        DeckChecked,
        DeckMiscounted,
        JamCleared,
    )
)
"""Events outside the play. Their position among the other events of a table does not affect a round."""
EVENT_TYPES: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Event)}


class UnknownEvent(ValueError):
    """An unknown event type, or `data` that does not fit its type. The message names the place."""


_ENCODER = msgspec.json.Encoder()
_TAGGED: dict[type[Event], int] = {kind: len(f'{{"type":"{tag}"') for tag, kind in EVENT_TYPES.items()}


def encode_data(event: Event) -> bytes:
    """The event's fields as a JSON object, without the type, which is in the envelope."""
    tagged = _ENCODER.encode(event)
    rest = tagged[_TAGGED[type(event)] :]
    return b"{" + rest.removeprefix(b",")


def shortened(event: Event) -> Event:
    """The event with every text cut to LONGEST_TEXT; a cut text ends with an ellipsis."""
    if len(encode_data(event)) <= LONGEST_TEXT:
        return event
    texts = {name: getattr(event, name) for name in event.__struct_fields__}
    long = {name: one for name, one in texts.items() if isinstance(one, str) and len(one) > LONGEST_TEXT}
    return msgspec.structs.replace(event, **{name: one[: LONGEST_TEXT - 1] + "…" for name, one in long.items()})


_UNTAGGED = {tag: msgspec.json.Decoder(kind) for tag, kind in EVENT_TYPES.items()}


def decode_data(type_name: str, data: bytes | msgspec.Raw) -> Event:
    """The event of `type_name` with the fields in `data` (JSON). Raises UnknownEvent."""
    decoder = _UNTAGGED.get(type_name)
    if decoder is None:
        raise UnknownEvent(f"unknown event type {type_name!r}")
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnknownEvent(f"{type_name}: {_in_words(str(error))}") from error


def _in_words(message: str) -> str:
    """Replace a regular expression in the message by its description, for the person who wrote the line."""
    for pattern, words in ((_CARD, _CARD_WORDS), (_POCKET, _POCKET_WORDS)):
        if pattern.replace("\\", "\\\\") in message or pattern in message:
            where = message.rpartition(" - at ")[2]
            return f"{words}; wrong at {where}"
    return plain(message)


def unknown_fields(type_name: str, data: dict[str, Any]) -> list[str]:
    """Keys of `data` that the event does not have, e.g. typing errors in a script."""
    return sorted(set(data) - set(EVENT_TYPES[type_name].__struct_fields__))
