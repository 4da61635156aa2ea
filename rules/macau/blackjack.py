"""Macau blackjack: Despacho 57/2009 (edition 2009) and 56/2004 with 42/2007 (edition 2004).

The flow: the bets are opened and laid; the bell ends them; the cards of 4(2) are burnt; two cards go to every seat
with a bet, the bank has one (shoe, shuffler) or two (metal box, hole card), one at a time from the left (5); in the
hole-card procedure the bank peeks under an ace or a ten (5(2)(3)(3)); the seats decide one after the other (6); the
bank takes its cards (6(1)); every hand is compared (9 to 12) and the additional bets are paid (13 to 16).

**What the table tells.** `bets.opened`, then `wager.placed` (main, additional bets) where chips are seen, else
`seat.opened` / `seat.closed`; `bets.closed` is the bell. `card.drawn` in the order of the deal, burnt cards too: who
receives it follows from the procedure. `face` is how it lay in the shoe, "down" or not told; "up" is a card that lay
the wrong way round, void and replaced (5(1)(1)). The bank's hole card and the players' face-down cards are told like
all others and shown by no view before their time. `hole_card.peeked` comes whenever the bank must peek. `seat.acted`
tells each decision: stand, hit, double, split, surrender, five_cards, even_money, and insurance with its whole amount
(also as wagers on `insurance`, which add up). `amount` is 0 or, where the bet is known, exactly what the decision adds.
Each hit and double brings one card; a split hand receives its second card when its turn comes (or both at once, by
option). Hands without any choice end by themselves, but not while cards of theirs lie face down: then blackjack and 21
are told to stand, too. `due` in the view says whom the rules wait for: a card (of `burn`, a hand, the `dealer`), a
decision with the actions allowed (and with the further seats that may surrender), or the peek. Of a hand that lies face
down it names what some cards could decide there; what its own cards do not allow is refused, and `refused` says why.
Hands are named as in `deal.corrected`: "dealer", "3.1", "3.2", a new hand after the seat's last; who corrects may say
"seat_3", "seat_3_2" too, as a console does. `deal.corrected` names the hands that changed, as they lie now; the hole
card may be left out.

**Who plays.** With a known main bet, the seats that have one; without any, the seats opened. A round whose seats nobody
told, or may have been told in events that were lost, waits for `deal.corrected` that names all of them, with no cards
yet: {"dealer": [], "1.1": []}. In any loss of a round, before the bell or after it, a bet may have been laid, or taken
back, unheard: such a round is resolved, or void, without the bets told before. Known are streak bets of earlier rounds,
and insurance told later; once the first cards lay, of that only what a person told, since chips may be missing.
Additional bets on a seat that does not play, or from one, go back. `any_pair:n`, `sevens:n`, `over_13:n`, `under_13:n`
are laid on the hand of another seat n. `main:2`, `main:3` are the bets of further players on one seat (20): they follow
its decisions, each with his own stake; where no bet is told, all that may lie there are named. Insurance is measured by
the whole bet of a seat, whoever of them laid it.

**Irregular.** A decision out of turn, or one the text does not allow, is noted and changes nothing; but the card after
a hit, double or split that was not taken is nobody's, unless a decision was taken since. A card that nobody asked for,
one that could not be read, or a loss of events after the bell suspends the round (5(1)(2)): it goes on when the deal is
corrected, and is void when declared so, when bets are opened or, once cards are out, a new shoe starts. The bets come
back then, streak bets stand as they stood (no article speaks of the bets). Insurance and even money are taken while it
waits, too. A hole card that is not named goes on lying there; where it is not known whether it does, the round waits. A
burn that was not seen whole suspends at the bell, until an empty correction says that it is done; so does one that may
be among the cards told, or lost, while the round waited or between two rounds. A hit told before a correction is told
again. So is the decision of a hand that was told two before its card came, which suspends: before the card is entered,
where its cards alone do not tell which it was. So is a double, a surrender or half for five cards that was told and not
taken, out of turn or while the round waited; a stand told before does not hold then, nor where the hand was given a
further card. A doubled hand waits for its third card. A resolved round can be corrected until the bets are opened, and
is in doubt where a decision of it proves to be older than its end; paid in doubt, its first result stands. Another
first card of the bank undoes what it does not allow: insurance goes back (12(1)), even money is a blackjack again
(10(3)), who surrendered (18(1)) or took half (19(1)) decides again. So do all whom a peek ended that saw a blackjack,
where it is none. Where the bank's second card is seen by then, the round waits.

**Readings.** The bank's first card ends the first pass (5(1): one each from the left); after the seats' second cards
by option. Only ace and six are the soft 17 of 6(6); afterwards its ace counts what is best again. 6(1) obliges the
bank to draw up to 17, and nothing depends on it once no hand is open: it draws where a hand or an insurance depends
on it (option: always). A pair is two cards of one rank. 16(6), 17(3): against a bank blackjack a seat that split
loses one bet only, and hands that had bust (7(2)) count for it; the other hands and doubles come back; a double is
made by 17(1)(1) or (2) where the house allows those, by (3) else, and loses then unless `limit_double_11` (10(7)).
Split hands are doubled by 17(1)(2) only. 16(3) lets aces be split again, 16(5) speaks of the other pairs: both
options. Even money and insurance end with the peek or the bank's second card. In 18(2) a further card (博牌, "carta
adicional") is what art. 6 calls so, a drawn one: once the bank has dealt the first of the round nobody surrenders,
until then any seat may, out of turn
too. 21(1) leaves no choice there; the option lets each hand surrender before its own third card, as floors do. The
special prize of 15 is for exactly three cards and closes the hand (option: on top of its result). 19 is for exactly
five. Over and under 13 count the ace as one, else over would favour the player; 13 itself loses. Three sevens are
paid where two were split (13(2)(2)), a plain third seven by option. Of hands that a correction added nobody told from
which they were split: three sevens are paid where the cards prove them; where they do not and a bet rests on it, the
deal is entered as it lay before that split, which is told then. Any pair is paid again for every further pair. The
maximum of 5(2)(3)(8) binds what is laid before the bell; insurance, splits and doubles (12, 16, 17) are never refused
for it.

Streaks: one button per seat; it advances on a win, stays on a tie (11(2)) and falls with a loss, split hands by 16(7),
ties among them not counted. From the bell of their first round these bets are no more changed (13(5)(2)(v)). Where a
seat with open streak bets does not play they are lost (option: they stand). They cannot be settled where no wagers are
told, and `stands` names the kinds that some seat still has open.

The second white card coming out while a round is dealt makes it the last; between two, the one that its card comes out
for (2(2)(1)). The metal box serves one round (2(2)(3)). The card of 4(2) that a round without cards did not burn is not
due twice in the next. A bank's needless card is void; by option, unseen (told as "down") before the payment, it counts,
the bank draws on where it has less than 17 then, and the result is corrected (6(1)); a blackjack, two cards, takes
none. A table nobody has played on is past its burn.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations_with_replacement, groupby, product
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardExposed,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    DealCorrected,
    DeviceOnline,
    EventsMissed,
    HoleCardPeeked,
    RoundPaid,
    RoundVoided,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.topics import Envelope
from rules.engine.money import Rounding, settle
from rules.engine.rounds import Round, irregular, next_number, noted, resolved, suspend, terms, voided, wager, witness
from rules.engine.ruleset import (
    Bet,
    Closed,
    Corrected,
    Opened,
    Push,
    Resolved,
    Result,
    Verdict,
    View,
    Void,
    Voided,
    Wager,
    Win,
    option,
)
from rules.games.cards import DECK, PIPS, RANKS, UNKNOWN, colour, rank, suit

Step: TypeAlias = tuple["BlackjackState", tuple[Verdict, ...]]
# Why a hand decides no more.
End: TypeAlias = Literal[
    "", "stand", "twenty_one", "blackjack", "bust", "surrender", "even_money", "five_cards", "special"
]
Hands: TypeAlias = tuple["Hand", ...]

STREAKS: Final = {f"winning_streak_{length}": length for length in (2, 3, 4, 5)}
PAYTABLE: Final = (
    Bet("main", "1; blackjack 3/2", "arts. 9, 10, 15, 18, 19", "the hand against the bank; comes back on a tie"),
    Bet("double", "1", "art. 17", "what a double adds to a hand; laid by the decision"),
    Bet("insurance", "2", "art. 12", "the bank, showing an ace, has blackjack"),
    Bet("any_pair", "11", "arts. 13(1), 14(1)", "the first two cards are a pair; again for each further pair"),
    Bet("sevens", "50, 150, 500 or 5000", "arts. 13(2), 14(2)", "two or three sevens, of several suits or of one"),
    Bet("over_13", "1", "arts. 13(3), 14(3)", "the first two cards count more than 13"),
    Bet("under_13", "1", "arts. 13(3), 14(3)", "the first two cards count less than 13"),
    Bet("perfect_pair", "5, 12 or 25", "arts. 13(4), 14(4)", "a pair: mixed, of one colour, of one suit"),
    Bet("winning_streak_2", "3", "arts. 13(5), 14(5)(1)", "the seat wins two rounds running"),
    Bet("winning_streak_3", "8", "arts. 13(5), 14(5)(2)", "the seat wins three rounds running"),
    Bet("winning_streak_4", "18", "arts. 13(5), 14(5)(3)", "the seat wins four rounds running"),
    Bet("winning_streak_5", "38", "arts. 13(5), 14(5)(4)", "the seat wins five rounds running"),
)
STREAK_PAYS: Final = {2: "3", 3: "8", 4: "18", 5: "38"}
# The kinds of art. 13; a player makes one of them a round.
KINDS: Final = {
    "any_pair": "any_pair",
    "sevens": "sevens",
    "over_13": "over_under",
    "under_13": "over_under",
    "perfect_pair": "perfect_pair",
    **dict.fromkeys(STREAKS, "winning_streak"),
}
FAMILIES: Final = tuple(bet.id for bet in PAYTABLE)
ALWAYS: Final = ("main", "double", "insurance")
# Art. 21(3) wants a permission of its own for these; edition 2004 does not know them.
PERMITTED: Final = ("perfect_pair", *STREAKS)
ACROSS: Final = ("any_pair", "sevens", "over_13", "under_13")

VOID_WORDS: Final = {"pt": "Jogada nula", "zh-Hant": "此局無效", "en": "Void"}
CORRECT: Final = "correct the deal at the console, or declare the round void; opening the bets voids it too"
NAME_SEATS: Final = (
    "name every seat that plays by correcting the deal, with its cards if any; or declare the round void"
)
BURN: Final = "burn what is to be burnt, then correct the deal with no cards at the console; or declare the round void"
RESHUFFLE: Final = "shuffle and start the shoe: the round is void then; or declare it void"
EARLIER: Final = (
    "enter the deal as it lay before that decision and tell it, then correct the deal; or declare the round void"
)
BURNT: Final = "how many cards were burnt is not certain"

UNLIMITED: Final = -1
# The burn was not seen whole: cards up to the bell belong to it, and then a person says whether it is done. And how
# many cards came out unread, where events were lost.
UNSURE: Final = -1
DEALER: Final = "dealer"
MAX_STRAYS: Final = 32
# A hand as this game names it, "3.2", and as a console does, "seat_3_2" ("seat_3" is the first).
_NAME: Final = re.compile(r"([1-9][0-9]?)\.([1-9])|seat_([1-9][0-9]?)(?:_([2-9]))?", re.ASCII)
_TENS: Final = "TJQK"
_AMENDED: Final = ("6", "13", "16", "17", "21")


class BlackjackOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What the texts leave to the house (art. 21), and the readings that are possible."""

    edition: Annotated[
        Literal["2009", "2004"], option("57/2009; 56/2004 with 42/2007", "which text is in force at the table")
    ] = "2009"
    procedure: Annotated[
        Literal["1", "2", "3"],
        option("art. 5(2)", "how cards are dealt: 1 face down, 2 face up, 3 with the bank's hole card (2009)"),
    ] = "2"
    device: Annotated[
        Literal["shoe", "metal_box", "continuous"],
        option("arts. 1(3)-(4), 2", "a shoe, a metal box with one deck for one round, or a shuffler that deals"),
    ] = "shoe"
    decks: Annotated[int, Meta(ge=1, le=12), option("art. 1(2)", "decks of 52 cards in play")] = 6
    seats: Annotated[int, Meta(ge=6, le=12), option("arts. 1(1), 3(1)", "seats of the table")] = 7
    burn: Annotated[
        Literal["decks", "one"], option("art. 4(1)", "cards burnt before the game: as many as decks, or one")
    ] = "decks"
    burn_each_round: Annotated[
        Literal["none", "one", "one_and_before_second"],
        option("art. 4(2)", "in each round after the first one card is burnt, and one before the bank's second card"),
    ] = "none"
    bank_first_card: Annotated[
        Literal["first_pass", "last"],
        option("art. 5(1), 5(2)", "the bank's card ends the first pass of cards, or follows the seats' second cards"),
    ] = "first_pass"
    players_down: Annotated[
        Literal["none", "first", "second", "both"],
        option("art. 5(2)(3)(5)", "which of the players' two cards lie face down in procedure 3"),
    ] = "none"
    table_maximum: Annotated[
        int, Meta(ge=0), option("art. 5(2)(3)(8)", "most that all bets of a round may be in procedure 3; 0: no limit")
    ] = 0
    first_card_face_up: Annotated[
        Literal["void", "valid"], option("art. 5(1)(1)", "the first card of the game, if it comes out face up")
    ] = "void"
    soft_17: Annotated[
        Literal["ace_six", "any_soft", "stand"], option("art. 6(1), 6(6)", "on which 17 with an ace the bank draws")
    ] = "ace_six"
    bank_draws: Annotated[
        Literal["needed", "always"],
        option("arts. 6(1), 7(1)", "whether the bank draws where no hand and no insurance depends on it"),
    ] = "needed"
    extra_card: Annotated[
        Literal["void", "valid_if_unseen"], option("art. 6(1)", "a card the bank took that it had not to take")
    ] = "void"
    limit_double_11: Annotated[
        bool, option("art. 10(7)", "a double on eleven loses only the first bet to a bank blackjack")
    ] = False
    insurance: Annotated[
        Literal["half_to_whole", "half"], option("art. 12(1)", "how much insurance the bank accepts, of the bet")
    ] = "half_to_whole"
    bets_offered: Annotated[
        tuple[str, ...],
        option("arts. 13, 21", f"bets offered, of {' '.join(FAMILIES)}; empty: all without permission of 21(3)"),
    ] = ()
    additional_bets: Annotated[
        Literal["one", "several"], option("art. 13", "kinds of additional bets a seat may lay in one round")
    ] = "one"
    three_sevens: Annotated[
        Literal["split", "any"], option("art. 13(2)(2)", "whether the two sevens must have been split")
    ] = "split"
    ace_over_under: Annotated[
        Literal["one", "free"],
        option("arts. 8, 13(3)", "what an ace counts over and under 13: one, or as suits the bet"),
    ] = "one"
    streak_absent: Annotated[
        Literal["lost", "stand"], option("art. 13(5)(2)(vi)", "open streak bets of a seat that does not play on")
    ] = "lost"
    special_prize: Annotated[
        Literal["closes", "on_top", "none"],
        option("arts. 15, 21(2)", "6-7-8 of a suit and three sevens: paid and over, paid beside the result, not paid"),
    ] = "closes"
    max_hands: Annotated[
        int, Meta(ge=4, le=8), option("arts. 16(1), 5(2)(3)(7)", "hands that a seat may split into")
    ] = 4
    resplit: Annotated[bool, option("art. 16(5)", "pairs other than aces may be split again")] = True
    resplit_aces: Annotated[bool, option("art. 16(3)", "aces may be split again")] = True
    split_cards: Annotated[
        Literal["at_turn", "at_once"], option("art. 16", "when the second of two split hands receives its second card")
    ] = "at_turn"
    doubling: Annotated[
        tuple[Literal["first_two", "split_pair", "eleven"], ...],
        option("art. 17(1)", "when a bet may be doubled: the first two cards, those of a split pair, eleven"),
    ] = ("first_two", "split_pair")
    surrender: Annotated[
        Literal["before_any_card", "before_own_card", "none"],
        option("arts. 18, 21(2)", "until when a seat may give up half its bet"),
    ] = "before_any_card"
    bettors: Annotated[int, Meta(ge=1, le=9), option("art. 20(1)", "players who may bet on one seat")] = 1
    decides: Annotated[
        Literal["seated", "seated_or_nearest", "highest"],
        option("art. 20(1)", "who decides for a seat: main (seated), else the next, or the highest bet"),
    ] = "seated"
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that a prize can be paid in")] = 1
    rounding: Annotated[Rounding, option("-", "direction where the smallest chip forces a rounding")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if self.edition == "2004":
            self._check_2004()
        if self.device == "metal_box":
            self._check_metal_box()
        if self.procedure != "3" and self.players_down != "none":
            raise ValueError("players_down: art. 5(2)(3)(5): a choice of procedure 3 only")
        if self.procedure != "3" and self.table_maximum:
            raise ValueError("table_maximum: art. 5(2)(3)(8): a choice of procedure 3 only")
        if self.procedure == "3" and self.max_hands > 5:
            raise ValueError("max_hands: art. 5(2)(3)(7): four splits, five hands at most in procedure 3")
        if self.procedure == "3" and self.burn_each_round == "one_and_before_second":
            raise ValueError("burn_each_round: art. 4(2): the bank's second card is not dealt open in procedure 3")
        if self.procedure == "3" and self.bank_first_card != "first_pass":
            raise ValueError("bank_first_card: art. 5(2)(3)(1): seats and bank receive one card each in procedure 3")
        if not self.doubling:
            raise ValueError("doubling: art. 17(1): one modality at least is allowed")
        if self.decides == "seated_or_nearest" and self.bettors > 3:
            raise ValueError("bettors: art. 20(1)(2): three players on one seat at most")
        self._check_bets()

    def _check_2004(self) -> None:
        if self.procedure == "3":
            raise ValueError("procedure: 56/2004 art. 5(2): procedures 1 and 2 only")
        unknown = [bet for bet in self.bets_offered if bet in PERMITTED]
        if unknown:
            raise ValueError(f"bets_offered: 56/2004 art. 13 has no {unknown[0]}")
        if self.streak_absent != "lost":
            raise ValueError("streak_absent: 56/2004 art. 13 has no winning streak")

    def _check_metal_box(self) -> None:
        if self.procedure == "2":
            raise ValueError("procedure: art. 5(2)(2): with a shoe or a shuffler only, not with device = metal_box")
        if self.decks != 1:
            raise ValueError("decks: arts. 1(3), 2(2)(3): the metal box holds one deck")
        if self.burn_each_round != "none":
            raise ValueError("burn_each_round: art. 4(2): with a shoe or a shuffler only, not with device = metal_box")
        if self.bank_first_card != "first_pass":
            raise ValueError("bank_first_card: art. 5(2)(1)(2): the bank receives two cards with device = metal_box")

    def _check_bets(self) -> None:
        if not self.bets_offered:
            return
        unknown = [bet for bet in self.bets_offered if bet not in FAMILIES]
        if unknown:
            raise ValueError(f"bets_offered: art. 13 has no bet {unknown[0]!r}, it has {', '.join(FAMILIES)}")
        missing = [bet for bet in ALWAYS if bet not in self.bets_offered]
        if missing:
            raise ValueError(f"bets_offered: arts. 13, 21(1): only additional bets are a choice; add {missing[0]}")
        if ("over_13" in self.bets_offered) != ("under_13" in self.bets_offered):
            raise ValueError("bets_offered: art. 13(3): over and under 13 are one bet")
        streaks = [bet for bet in STREAKS if bet in self.bets_offered]
        if streaks and len(streaks) != len(STREAKS):
            raise ValueError("bets_offered: art. 13(5)(1): the winning streaks 2 to 5 are offered together")


class Hand(Struct, frozen=True):
    """One hand of a seat. `doubled`: by which item of 17(1).

    `split_from`: the number of the hand it was split from; 0 where a person entered it and nobody can tell.
    """

    seat: int
    number: int = 1
    cards: tuple[str, ...] = ()
    ended: End = ""
    doubled: int = 0
    split: bool = False
    split_from: int = 0


class Streak(Struct, frozen=True):
    """The open streak bets of a seat, and the rounds won since they were laid."""

    seat: int
    bets: tuple[Wager, ...]
    wins: int = 0


class Play(Struct, frozen=True):
    """One round.

    `first_deal` is how many cards lie before the first decision, `dealt` how many do so far, `turn` the hands that have
    decided; `asked`: that hand's card is on its way. `uncounted`: the seats whose chips on insurance do not add up,
    since a person told the whole, or some may be lost. `streaks` are as they stood at the bell, the first `earlier`
    from rounds before. `unsure`: which seats play is not known. `first`: the first round after a shuffle. `burns`: a
    card is burnt before the bank's second. `strays` came while the round waited for a person, and `unread` more, UNSURE
    after a loss; `entered` were laid by a correction and not told by the shoe: it may tell them yet. `lost`: events are
    missing, so the bets told are not known. `contradicted`: the hands that were told what was not taken and their cards
    may not tell, two things of one card maybe, each until its decision is told again. `refused`: a decision that brings
    a card was, so the next may be that hand's.
    """

    round: Round
    hands: Hands = ()
    bank: tuple[str, ...] = ()
    first_deal: int = 0
    dealt: int = 0
    turn: int = 0
    asked: bool = False
    peeked: Literal["", "no", "yes"] = ""
    shown: bool = False
    burns: bool = False
    insured: tuple[int, ...] = ()
    uncounted: tuple[int, ...] = ()
    streaks: tuple[Streak, ...] = ()
    unsure: bool = False
    first: bool = False
    corrected: bool = False
    reopened: bool = False
    extra: bool = False
    strays: tuple[str, ...] = ()
    unread: int = 0
    entered: tuple[str, ...] = ()
    lost: bool = False
    earlier: int = 0
    contradicted: tuple[str, ...] = ()
    refused: bool = False


class BlackjackState(Struct, frozen=True):
    """Where a table stands.

    `seats` are open. `last` is the resolved round until the next begins, `paid` when its prizes are. `burn` counts the
    cards still to be burnt before the next one is dealt, `left` the rounds that may still be dealt before a shuffle.
    `fresh`: shuffled, and no round since. `unsure`: what was told of the seats may be incomplete.
    """

    table: str
    day: str = ""
    count: int = 0
    seats: tuple[int, ...] = ()
    play: Play | None = None
    last: Play | None = None
    paid: bool = False
    burn: int = 0
    left: int = UNLIMITED
    fresh: bool = False
    unsure: bool = False
    streaks: tuple[Streak, ...] = ()


# ---- art. 8: what cards are worth


def count(cards: Iterable[str]) -> tuple[int, bool]:
    """The best total, and whether an ace counts 11 in it."""
    total, ace = 0, False
    for card in cards:
        total += PIPS[card]
        ace = ace or card[0] == "A"
    return (total + 10, True) if ace and total <= 11 else (total, False)


def is_blackjack(cards: tuple[str, ...]) -> bool:
    """Art. 10(1): an ace with a ten or figure. That the hand was not split is for the caller to know."""
    return len(cards) == 2 and PIPS[cards[0]] + PIPS[cards[1]] == 11 and "A" in (cards[0][0], cards[1][0])


def is_special(cards: tuple[str, ...]) -> bool:
    """Art. 15: 6-7-8 of one suit, or three sevens."""
    if len(cards) != 3 or PIPS[cards[0]] + PIPS[cards[1]] + PIPS[cards[2]] != 21:
        return False
    ranks = sorted(card[0] for card in cards)
    return ranks == ["7", "7", "7"] or (ranks == ["6", "7", "8"] and len({suit(card) for card in cards}) == 1)


def perfect_pair(one: str, two: str) -> tuple[str, int]:
    """Art. 13(4): what the pair pays, "" for none, and its item in art. 14(4)."""
    if rank(one) != rank(two):
        return "", 0
    if suit(one) == suit(two):
        return "25", 3
    return ("12", 2) if colour(one) == colour(two) else ("5", 1)


def sevens(first: tuple[str, str], third: str) -> tuple[str, int]:
    """Art. 13(2), 14(2): what the highest combination pays, and its item. `third` is "" where no third card counts."""
    if rank(first[0]) != "7" or rank(first[1]) != "7":
        return "", 0
    suits = {suit(card) for card in first}
    if third and rank(third) == "7":
        return ("5000", 4) if suits == {suit(third)} else ("500", 3)
    return ("150", 2) if len(suits) == 1 else ("50", 1)


def third_cards(hands: Hands) -> tuple[str, ...]:
    """The first card dealt to a seat after its first split, or those that it may have been.

    A seat plays its hands in order. So it is hand 1's, or hand 3's where hand 1 was split once more.
    """
    first, further = hands[0].cards[1:2], hands[2:]
    if not further or (further[0].split_from > 1):
        return first
    if any(hand.split_from == 1 for hand in further):
        return further[0].cards[:1]
    return (*first, further[0].cards[0])


def origin(hand: Hand, before: Hands, hands: Hands) -> int:
    """The hand that hand 3, entered by a person, was split from; 0 where the cards do not say.

    `before` are those of its seat before the correction, `hands` those after it.
    """
    now = hands[0].cards
    if len(now) == 1:  # it was just split, and waits for its card
        return 1
    if len(before) != 2 or len(before[0].cards) < 2:
        return 0
    if before[0].cards[:2] == now[:2]:
        return 2
    return 1 if before[0].cards[1] == hand.cards[0] else 0


class Compared(Struct, frozen=True):
    """One hand against the bank: `main` and `double` are what they pay, "0" a tie, "" lost; `won` as streaks count."""

    hand: Hand
    result: str
    main: str
    double: str = ""
    won: int = 0


class Blackjack:
    """The ruleset."""

    id: ClassVar[str] = "macau.blackjack"
    title: ClassVar[str] = "Blackjack, Macau"
    law: ClassVar[str] = "Despacho 57/2009; edition 2004: Despacho 56/2004 with 42/2007"
    Options: ClassVar[type[BlackjackOptions]] = BlackjackOptions
    State: ClassVar[type[BlackjackState]] = BlackjackState

    def __init__(self, options: BlackjackOptions) -> None:
        """Work out, once, what depends on the options and on two cards alone."""
        self.options = options
        self._2004 = options.edition == "2004"
        # The bank's second card lies face down from the first deal on.
        self._hole = options.procedure == "3" or options.device == "metal_box"
        self._peeks = options.procedure == "3"
        down = {"1": "both", "2": "none", "3": options.players_down}[options.procedure]
        self._down = {"none": (), "first": (0,), "second": (1,), "both": (0, 1)}[down]
        self._bank_last = options.bank_first_card == "last"
        self._rounds = 1 if options.device == "metal_box" else UNLIMITED
        self._burn = options.decks if options.burn == "decks" else 1
        self._terms = terms(self.id, options.edition, options, VOID_WORDS)
        families = options.bets_offered or tuple(bet for bet in FAMILIES if bet not in PERMITTED)
        self._families = frozenset(families)
        bets = [bet for bet in PAYTABLE if bet.id in families]
        across = [
            replace(bet, id=f"{bet.id}:n", text=f"the same for seat n: {bet.text}") for bet in bets if bet.id in ACROSS
        ]
        further = Bet("main:n", "1; blackjack 3/2", "art. 20(1)", "the bet of the n-th player on a seat, 2 or more")
        self._bets = (*bets, *across, *((further,) if options.bettors > 1 else ()))
        self._offered = frozenset(
            (
                *(bet for bet in families if bet not in ("double", "insurance")),
                *(f"{bet}:{seat}" for bet in ACROSS if bet in families for seat in range(1, options.seats + 1)),
                *(f"main:{place}" for place in range(2, options.bettors + 1)),
            )
        )
        self._cites: dict[str, str] = {}
        article = "5(2)(1)(2)" if options.device == "metal_box" else "5(2)(1)(1)"
        self._dealing = {"1": article, "2": "5(2)(2)", "3": "5(2)(3)"}[options.procedure]
        self._on_two = {cards: self._of_two(*cards) for cards in product(DECK, DECK)}

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of the text."""
        return self._bets

    def start(self, table: str) -> BlackjackState:
        """A table nobody has played on."""
        return BlackjackState(table)

    # ---- what may be shown

    def view(self, state: BlackjackState) -> View:
        """Phase: idle, burning, betting, dealing, suspended, resolved, ended (no round before a shuffle)."""
        streaks = {str(one.seat): one.wins + 1 for one in state.streaks}
        detail: dict[str, Any] = {"seats": state.seats, **({"streaks": streaks} if streaks else {})}
        play = state.play
        if play is None:
            if state.last is not None:
                return View(state.last.round.id, "resolved", {**detail, **self._laid(state.last, over=True)})
            phase = "burning" if state.burn else "ended" if state.left == 0 else "idle"
            return View("", phase, {**detail, "burn": state.burn} if state.burn > 0 else detail)
        round_ = play.round
        detail["last"] = state.left == 0
        if not round_.closed:
            return View(round_.id, "betting", {**detail, "due": self._due(state, play)} if state.burn > 0 else detail)
        detail |= self._laid(play)
        if play.insured:
            detail["insured"] = play.insured
        if even := tuple(hand.seat for hand in play.hands if hand.ended == "even_money"):
            detail["even_money"] = even
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if refused := _refused(round_):
            detail["refused"] = refused
        due = self._due(state, play)
        detail["due"] = due
        if due["kind"] == "decision":
            hand = play.hands[play.turn]
            if f"{hand.seat}.{hand.number}" in detail["totals"]:
                detail["say"] = _called(hand)
        return View(round_.id, "dealing", detail)

    def _laid(self, play: Play, *, over: bool = False) -> dict[str, Any]:
        """The hands as everybody may see them; once a round is over by its result, all of them."""
        hands = {DEALER: play.bank if over or play.shown or not self._hole else _masked(play.bank, (1,))}
        for hand in play.hands:
            seen = over or hand.split or hand.ended in _LAID_OPEN
            hands[f"{hand.seat}.{hand.number}"] = hand.cards if seen else _masked(hand.cards, self._down)
        totals = {name: count(cards)[0] for name, cards in hands.items() if cards and UNKNOWN not in cards}
        return {"hands": hands, "totals": totals}

    def _due(self, state: BlackjackState, play: Play) -> dict[str, Any]:
        """Whom the rules wait for: a card, the peek, or a decision with the actions allowed."""
        if state.burn or (play.burns and self._bank_next(play)):
            return {"kind": "card", "hand": "burn"}
        if play.dealt < play.first_deal:
            place = self._receiver(play)
            return {"kind": "card", "hand": DEALER if place < 0 else _name(play.hands[place])}
        if self._peek_due(play):
            return {"kind": "peek", "hand": DEALER}
        if play.turn == len(play.hands):
            return {"kind": "card", "hand": DEALER}
        place = self._card_for(play)
        if place >= 0:
            return {"kind": "card", "hand": _name(play.hands[place])}
        hand = play.hands[play.turn]
        due = {
            "kind": "decision",
            "hand": _name(hand),
            "seat": hand.seat,
            "actions": self._possible_actions(play, hand),
        }
        if self.options.bettors > 1:
            due["decides"] = self._decider(play, hand.seat)
        if self.options.surrender == "before_any_card":
            waiting = play.hands[play.turn + 1 :]
            if early := tuple(one.seat for one in waiting if self._offers_surrender(play, one)):
                due["surrender"] = early
        return due

    def _decider(self, play: Play, seat: int) -> str:
        """Art. 20(1): whose decision counts, by the name of his bet."""
        mains = [one for one in play.round.wagers if one.seat == seat and one.hand == 1 and _is_main(one.bet)]
        mains.sort(key=lambda one: one.bet)
        if not mains:
            return "main"
        match self.options.decides:
            case "seated":
                return "main"
            case "seated_or_nearest":
                return mains[0].bet
            case _:
                most = max(one.amount for one in mains)
                highest = [one.bet for one in mains if one.amount == most]
                return highest[0] if len(highest) == 1 else "main"

    # ---- events

    def apply(self, state: BlackjackState, seen: Envelope) -> Step:
        """One event."""
        match seen.event:
            case CardDrawn(card=card, face=face):
                return self._card(state, seen, card, face)
            case SeatActed(seat=seat, hand=number, action=action, amount=amount):
                return self._acted(state, seen, seat, number, action, amount)
            case WagerPlaced() | WagerWithdrawn() as one:
                return self._wager(state, seen, one)
            case BetsOpened():
                return self._bets_opened(state, seen)
            case BetsClosed():
                return self._bell(state, seen)
            case HoleCardPeeked(blackjack=blackjack):
                return self._peek(state, seen, blackjack=blackjack)
            case RoundPaid():
                return self._paid(state, seen)
            case SeatOpened(seat=seat) | SeatClosed(seat=seat) as told:
                return self._seat(state, seen, seat, opened=isinstance(told, SeatOpened))
            case CardUnreadable():
                return self._unreadable(state, seen)
            case DealCorrected(hands=laid):
                return self._corrected(state, seen, laid)
            case RoundVoided(reason=reason):
                return self._declared_void(state, seen, reason or "declared by the croupier")
            case CardExposed(hand=name):
                return self._exposed(state, seen, name)
            case ShoeStarted(decks=decks):
                return self._shoe_started(state, seen, decks)
            case CutCardDrawn():
                return self._cut_card(state, seen)
            case ShoeEmptied():
                return self._emptied(state, seen)
            case CardsReturned():
                return self._returned(state, seen)
            case DeviceOnline(continuous=False) | EventsMissed():
                return self._missed(state, seen)
            case _:
                return state, ()

    # ---- bets and seats

    def _bets_opened(self, state: BlackjackState, seen: Envelope) -> Step:
        verdicts: tuple[Verdict, ...] = ()
        play = state.play
        if play is not None:
            if not play.round.closed and not play.unsure:
                return replace(state, play=_seen(play, seen)), ()
            reason = play.round.suspended or ("events_missed" if play.unsure else "never_completed")
            state, verdicts = self._void(state, play, seen, reason)
        day, number = next_number(state.day, state.count, seen)
        round_ = Round(f"{state.table}:{day}:{number}", (seen.id,))
        each = self.options.burn_each_round
        following = not state.fresh
        begun = replace(
            state,
            day=day,
            count=number,
            play=Play(round_, first=state.fresh, burns=following and each == "one_and_before_second"),
            last=None,
            paid=False,
            fresh=False,
            # What a round that never burnt its card left over is not due twice.
            burn=max(state.burn, 1) if following and each != "none" and state.burn >= 0 else state.burn,
        )
        return begun, (*verdicts, Opened(round_.id))

    def _seat(self, state: BlackjackState, seen: Envelope, seat: int, *, opened: bool) -> Step:
        """A seat opened or closed after the bell plays, or not, from the next round on."""
        if seat > self.options.seats:
            return state, self._note("no_such_seat", f"seat {seat} of {self.options.seats}", "3(1)", seen)
        if (seat in state.seats) == opened:
            return state, ()
        seats = tuple(sorted((*state.seats, seat))) if opened else tuple(one for one in state.seats if one != seat)
        state = replace(state, seats=seats)
        if state.play is not None and not state.play.round.closed:
            state = replace(state, play=_seen(state.play, seen))
        return state, ()

    def _wager(self, state: BlackjackState, seen: Envelope, one: WagerPlaced | WagerWithdrawn) -> Step:
        play = state.play
        text = f"seat {one.seat} on {one.bet}"
        if play is None:
            return state, self._note("bet_without_round", text, "5(1)", seen)
        round_ = play.round
        if one.bet == "insurance" and round_.closed and isinstance(one, WagerPlaced):
            return self._insure(state, play, seen, one.seat, one.amount, chip=True)
        if not round_.closed and (refused := self._refused(state, round_, one)):
            code, article = refused
            round_ = self._irregular(round_, code, text, article, seen)
        else:
            round_ = wager(round_, one, self._offered, self._cite("13"), seen)
        return replace(state, play=replace(play, round=round_)), ()

    def _refused(
        self, state: BlackjackState, round_: Round, one: WagerPlaced | WagerWithdrawn
    ) -> tuple[str, str] | None:
        """Why a bet is not taken, and the article; None where it is."""
        if one.seat > self.options.seats:
            return "no_such_seat", "3(1)"
        if one.bet in STREAKS and any(streak.seat == one.seat for streak in state.streaks):
            return "streak_bets_stand", "13(5)(2)(v)"
        if isinstance(one, WagerWithdrawn):
            return None
        kind = KINDS.get(one.bet.partition(":")[0])
        if kind and self.options.additional_bets == "one":
            kinds = {KINDS.get(held.bet.partition(":")[0]) for held in round_.wagers if held.seat == one.seat}
            if kinds - {None, kind}:
                return "second_additional_bet", "13"
        most = self.options.table_maximum
        if most and sum(held.amount for held in round_.wagers) + one.amount > most:
            return "table_maximum", "5(2)(3)(8)"
        return None

    def _bell(self, state: BlackjackState, seen: Envelope) -> Step:
        play = state.play
        if play is None:
            return state, self._note("bell_without_round", "the bell rang, no round is open", "5(1)", seen)
        if play.round.closed:
            return replace(state, play=_seen(play, seen)), ()
        state, play, verdicts = self._close(state, play, seen)
        doubt, remedy = "", NAME_SEATS
        if play.unsure:
            doubt = "events before the bell may be missing: which seats play is not certain"
        elif not play.hands:
            doubt = "no seat is known to play"
        elif state.burn == UNSURE:
            doubt, remedy = BURNT, BURN
        elif state.left == 0:
            doubt, remedy = "the cards were to be shuffled before this round", RESHUFFLE
        state = replace(state, left=state.left - 1) if state.left > 0 else state
        if not doubt:
            return state, verdicts
        state, held = self._suspend(state, play, seen, doubt, remedy)
        return state, verdicts + held

    def _close(
        self, state: BlackjackState, play: Play, seen: Envelope
    ) -> tuple[BlackjackState, Play, tuple[Verdict, ...]]:
        """Nothing more: who plays, which bets stand, and the streak bets that do from now on."""
        round_ = witness(play.round, seen)
        mains = sorted({one.seat for one in round_.wagers if _is_main(one.bet)})
        # What was told of the seats does not matter where bets are.
        unsure = play.unsure or (state.unsure and not mains)
        seats = tuple(mains) or state.seats
        laid = tuple(replace(one, hand=1) if _is_main(one.bet) else one for one in round_.wagers)
        play = replace(play, round=replace(round_, closed=True, wagers=laid), unsure=unsure)
        play = replace(play, streaks=state.streaks, earlier=len(state.streaks))
        if seats and not unsure:
            play = self._seated(play, seats, seen)
        return replace(state, play=play, streaks=play.streaks), play, (Closed(round_.id),)

    def _seated(self, play: Play, seats: tuple[int, ...], seen: Envelope) -> Play:
        """These seats are dealt to. Bets that lie elsewhere go back; streak bets stand from now on."""
        round_, streaks = play.round, play.streaks
        if round_.wagers:
            round_ = self._idle_bets(round_, seats, seen)
            if new := [one for one in round_.wagers if one.bet in STREAKS]:
                by_seat = groupby(sorted(new, key=lambda one: one.seat), key=lambda one: one.seat)
                streaks += tuple(Streak(seat, tuple(bets)) for seat, bets in by_seat)
                kept = tuple(one for one in round_.wagers if one.bet not in STREAKS)
                round_ = replace(round_, wagers=kept)
        hands = tuple(Hand(seat) for seat in seats)
        first_deal = 2 * len(seats) + (2 if self._hole else 1)
        return replace(play, round=round_, hands=hands, first_deal=first_deal, streaks=streaks)

    def _idle_bets(self, round_: Round, seats: tuple[int, ...], seen: Envelope) -> Round:
        """Arts. 5(1), 13: additional bets are laid beside a main bet, on a hand that is dealt; others go back."""
        for one in round_.wagers:
            on = one.bet.partition(":")[2] if one.bet.partition(":")[0] in ACROSS else ""
            if one.seat not in seats or (on and int(on) not in seats):
                text = f"seat {one.seat} on {one.bet}, where no hand is dealt: given back"
                round_ = self._irregular(round_, "bet_without_hand", text, "13", seen)
                round_ = replace(round_, wagers=tuple(kept for kept in round_.wagers if kept != one))
        return round_

    # ---- cards

    def _card(self, state: BlackjackState, seen: Envelope, card: str, face: str | None) -> Step:
        if card not in PIPS:
            return self._unreadable(state, seen)
        play = state.play
        if play is None:
            if state.burn:
                return replace(state, burn=max(state.burn - 1, UNSURE)), ()
            return self._card_between(state, seen, card, face)
        round_ = play.round
        if round_.suspended:
            strays = (*play.strays, card)[-MAX_STRAYS:]
            return replace(state, play=replace(play, round=witness(round_, seen), strays=strays)), ()
        if play.refused:
            reason = "a card was drawn after a decision that was refused: whose card it is, is not known"
            return self._stray(state, play, seen, card, reason)
        if state.burn:
            return replace(state, burn=max(state.burn - 1, UNSURE)), ()
        if not round_.closed:
            state, play, verdicts = self._close(state, play, seen)
            play = replace(play, strays=(card,))
            state, held = self._suspend(state, play, seen, _before_bell(play))
            return state, verdicts + held
        if face == "up":
            if self.options.first_card_face_up == "void" or not play.first or play.dealt:
                text = "a card came out face up: it is void, the next one takes its place"
                round_ = self._irregular(round_, "card_face_up", text, "5(1)(1)", seen)
                return replace(state, play=replace(play, round=round_)), ()
            round_ = self._irregular(
                round_, "first_card_face_up", "the first card came face up: valid", "5(1)(1)", seen
            )
        if card in play.entered:
            reason = "a card entered by hand was told by the shoe after all: it may be the same one, or another"
            return self._suspend(state, replace(play, strays=(*play.strays, card)[-MAX_STRAYS:]), seen, reason)
        return self._placed(state, replace(play, round=witness(round_, seen)), seen, card)

    def _placed(self, state: BlackjackState, play: Play, seen: Envelope, card: str) -> Step:
        """A valid card goes where art. 5 or the last decision sends it."""
        hands = play.hands
        if play.dealt < play.first_deal:
            place = self._receiver(play)
            dealt = play.dealt + 1
            if place < 0:
                play = replace(play, bank=(*play.bank, card), dealt=dealt)
            else:
                hand = hands[place]
                hand = Hand(hand.seat, 1, (*hand.cards, card))
                play = replace(play, hands=(*hands[:place], hand, *hands[place + 1 :]), dealt=dealt)
            if dealt < play.first_deal:
                return replace(state, play=play), ()
            return self._go(state, self._first_judged(play), seen)
        if self._peek_due(play):
            return self._stray(state, play, seen, card, "a card was drawn before the bank looked at its hole card")
        if play.turn < len(hands):
            place = self._card_for(play)
            if place < 0:
                reason = f"a card was drawn, but hand {_name(hands[play.turn])} has not decided"
                return self._stray(state, play, seen, card, reason)
            hand = self._judged(play, replace(hands[place], cards=(*hands[place].cards, card)))
            play = replace(play, hands=(*hands[:place], hand, *hands[place + 1 :]), asked=False)
            return self._go(state, play, seen)
        if play.burns and len(play.bank) == 1:
            return replace(state, play=replace(play, burns=False)), ()
        return self._go(state, replace(play, bank=(*play.bank, card)), seen)

    def _stray(self, state: BlackjackState, play: Play, seen: Envelope, card: str, reason: str) -> Step:
        return self._suspend(state, replace(play, strays=(*play.strays, card)[-MAX_STRAYS:]), seen, reason)

    def _card_between(self, state: BlackjackState, seen: Envelope, card: str, face: str | None) -> Step:
        """After a round: the bank took a card it had not to take (6(1)), or nobody knows what this one is."""
        last = state.last
        if last is None or state.paid or len(last.bank) < 2 or self._draws(last.bank):
            note = self._note("card_without_round", "a card was drawn, no round is dealt", "5(1)", seen)
            return self._maybe_burnt(state), note
        counts = self.options.extra_card == "valid_if_unseen" and face == "down" and not last.extra
        if not counts or is_blackjack(last.bank):
            text = f"the bank took a card in {last.round.id} that it had not to take: it is void"
            return self._maybe_burnt(state), self._note("bank_extra_card", text, "6(1)", seen)
        text = "the bank took a card unseen that it had not to take: it counts"
        round_ = self._irregular(last.round, "bank_extra_card", text, "6(1)", seen)
        # An ace in it counts one now, maybe: below seventeen the bank draws on.
        return self._go(state, replace(last, round=round_, bank=(*last.bank, card), extra=True, reopened=True), seen)

    def _maybe_burnt(self, state: BlackjackState) -> BlackjackState:
        """Art. 4(2): what leaves the shoe between two rounds may be the card that is burnt in the next."""
        each = self.options.burn_each_round != "none" and not state.fresh
        return replace(state, burn=UNSURE) if each else state

    def _receiver(self, play: Play) -> int:
        """The hand that receives the next card of the first deal; -1 is the bank."""
        seats, dealt = len(play.hands), play.dealt
        if self._bank_last:
            return dealt % seats if dealt < 2 * seats else -1
        place = dealt % (seats + 1)
        return -1 if place == seats else place

    def _card_for(self, play: Play) -> int:
        """The hand that a card is on its way to, at its turn; -1 where a decision is due."""
        turn, hands = play.turn, play.hands
        hand = hands[turn]
        if play.asked or len(hand.cards) == 1:
            return turn
        if hand.split and self.options.split_cards == "at_once":
            for place in range(turn + 1, len(hands)):
                if hands[place].seat == hand.seat and len(hands[place].cards) == 1:
                    return place
        return -1

    def _first_judged(self, play: Play) -> Play:
        """Art. 6(4)(1): a blackjack asks for nothing more."""
        if not any(is_blackjack(hand.cards) for hand in play.hands):
            return play
        return replace(play, hands=tuple(self._judged(play, hand) for hand in play.hands))

    def _judged(self, play: Play, hand: Hand) -> Hand:
        """The hand with its end, where it has no choice left."""
        ended = self._end_of(play, hand)
        return replace(hand, ended=ended) if ended else hand

    def _end_of(self, play: Play, hand: Hand) -> End:
        cards = hand.cards
        total, _ = count(cards)
        if total > 21:
            return "bust"
        # 6(3): what lies face down nobody knows to be 21 before its player has decided.
        told = self._hides(hand) and play.peeked != "yes" and not play.shown
        if len(cards) == 2:
            if total == 21 and not hand.split and not told:
                return "blackjack"
            if hand.split and cards[0][0] == "A":
                return "" if self._may_split(play, hand) else "twenty_one" if total == 21 else "stand"
        if len(cards) == 3 and self.options.special_prize == "closes" and is_special(cards):
            return "special"
        if hand.doubled and len(cards) > 2:
            return "stand"
        if total == 21 and not told and not self._may_take_half(play, hand):
            return "twenty_one"
        # 5(2)(3)(4): what is lost is collected at once, nobody decides any more.
        return "stand" if play.peeked == "yes" and len(cards) > 1 else ""

    # ---- decisions

    def _hides(self, hand: Hand) -> bool:
        """Whether cards of the hand lie face down. A split lays them open."""
        return bool(self._down) and not hand.split

    def _possible_actions(self, play: Play, hand: Hand) -> tuple[str, ...]:
        """The decisions that a viewer may know of: with cards face down, those of any cards that may lie there."""
        if not self._hides(hand):
            return self._actions(play, hand)
        found: set[str] = set()
        for ranks in combinations_with_replacement(RANKS, len(self._down)):
            cards = list(hand.cards)
            for place, one in zip(self._down, ranks, strict=True):
                cards[place] = one + "S"
            may_be = replace(hand, cards=tuple(cards))
            if self._possible(play, may_be) and count(cards)[0] <= 21:
                found.update(self._actions(play, may_be))
        return tuple(action for action in _DECISIONS if action in found)

    def _actions(self, play: Play, hand: Hand) -> tuple[str, ...]:
        """What the hand whose turn it is may decide."""
        cards = hand.cards
        if is_blackjack(cards) and not hand.split:
            return ("stand", "even_money") if self._may_take_even_money(play) else ("stand",)
        aces = hand.split and cards[0][0] == "A"
        actions = ["stand"]
        if count(cards)[0] < 21 and not aces:
            actions.append("hit")
            if self._modality(hand):
                actions.append("double")
        if self._may_split(play, hand):
            actions.append("split")
        if self._may_surrender(play, hand):
            actions.append("surrender")
        if self._may_take_half(play, hand):
            actions.append("five_cards")
        return tuple(actions)

    def _modality(self, hand: Hand) -> int:
        """Art. 17(1): the item that lets the hand be doubled, 0 for none."""
        if len(hand.cards) != 2:
            return 0
        if hand.split:
            return 2 if "split_pair" in self.options.doubling and hand.cards[0][0] != "A" else 0
        if "first_two" in self.options.doubling:
            return 1
        return 3 if "eleven" in self.options.doubling and count(hand.cards)[0] == 11 else 0

    def _may_split(self, play: Play, hand: Hand) -> bool:
        """Art. 16: a pair, not too many hands, and none of its rank that was not split before."""
        cards = hand.cards
        if len(cards) != 2 or cards[0][0] != cards[1][0]:
            return False
        if not hand.split:
            return True
        if not (self.options.resplit_aces if cards[0][0] == "A" else self.options.resplit):
            return False
        others = [one for one in play.hands if one.seat == hand.seat and one.number != hand.number]
        if len(others) + 1 >= self.options.max_hands:
            return False
        return not any(
            len(one.cards) > 1 and one.cards[0][0] == one.cards[1][0] and (one.ended or len(one.cards) > 2)
            for one in others
        )

    def _may_surrender(self, play: Play, hand: Hand) -> bool:
        """Art. 18: not against an ace, before any further card of the round, or by option the hand's own."""
        if is_blackjack(hand.cards):  # it decides on even money only
            return False
        return self._surrender_open(play, hand)

    def _offers_surrender(self, play: Play, hand: Hand) -> bool:
        """Whether a viewer may think that a hand may be given up out of turn."""
        may = self._surrender_open if self._hides(hand) else self._may_surrender
        return not hand.ended and may(play, hand)

    def _surrender_open(self, play: Play, hand: Hand) -> bool:
        """Art. 18, by what everybody sees."""
        if self.options.surrender == "none" or play.bank[0][0] == "A" or hand.split or len(hand.cards) != 2:
            return False
        if self.options.surrender == "before_own_card":
            return True
        return sum(len(one.cards) for one in play.hands) + 1 + self._hole == play.first_deal

    def _may_take_half(self, play: Play, hand: Hand) -> bool:
        """Art. 19(1): five cards, not against an ace."""
        return len(hand.cards) == 5 and play.bank[0][0] != "A" and not hand.doubled

    def _acted(self, state: BlackjackState, seen: Envelope, seat: int, number: int, action: str, amount: int) -> Step:
        play = state.play
        text = f"seat {seat} hand {number}: {action}"
        if play is None:
            last = None if state.paid else state.last
            if last is not None and seen.event.overtaken and _unheard(last, seat, number, action):
                late = _doubted(replace(last, reopened=True), f"{seat}.{number}")
                return self._suspend(state, late, seen, f"{text}, told only after the round was over", EARLIER)
            return state, self._note("decision_without_round", text, "6(3)", seen)
        round_ = play.round
        if round_.suspended and action not in ("insurance", "even_money"):
            return replace(state, play=self._untaken(_seen(play, seen), seat, number, action)), ()
        if play.lost and not round_.closed:  # the bell may be among what is missing
            return replace(state, play=self._untaken(_seen(play, seen), seat, number, action)), ()
        if not round_.closed or play.dealt < play.first_deal:
            play = self._untaken(play, seat, number, action)
            return self._refuse(state, _astray(play, action), seen, "decision_before_deal", text, "6(5)")
        match action:
            case "insurance":
                return self._insure(state, play, seen, seat, amount)
            case "even_money":
                return self._even_money(state, play, seen, seat)
            case "surrender" if self.options.surrender == "before_any_card":
                place = next((n for n, hand in enumerate(play.hands) if hand.seat == seat), None)
            case _:
                place = play.turn if play.turn < len(play.hands) else None
        hand = play.hands[place] if place is not None else None
        if hand is None or (hand.seat, hand.number) != (seat, number):
            if any((one.seat, one.number) == (seat, number) and _said(one, action) for one in play.hands):
                return replace(state, play=_seen(play, seen)), ()
            play = self._untaken(play, seat, number, action)
            return self._refuse(state, _astray(play, action), seen, "out_of_turn", text, "6(3)")
        if hand.ended == action:
            return replace(state, play=_seen(play, seen)), ()
        if play.asked and place == play.turn:
            if action == ("double" if hand.doubled else "hit"):
                return replace(state, play=_seen(play, seen)), ()
            undone = _unasked(play)
            if action in self._possible_actions(undone, undone.hands[place]):
                return self._contradicted(state, undone, seen, proven=action == "stand" and not hand.doubled)
        if self._peek_due(play):
            return self._refuse(state, play, seen, "decision_before_peek", text, "5(2)(3)(3)")
        assert place is not None
        if place == play.turn and self._card_for(play) >= 0:
            if action == "split" and hand.split and len(hand.cards) == 1:
                return replace(state, play=_seen(play, seen)), ()
            return self._refuse(state, play, seen, "decision_before_card", text, "6(3)")
        allowed = self._actions(play, hand) if place == play.turn else self._early(play, hand)
        if action not in allowed:
            surrenders = ("surrender",) if self._offers_surrender(play, hand) else ()
            offered = self._possible_actions(play, hand) if place == play.turn else surrenders
            code = "cards_do_not_allow" if action in offered else "decision_not_allowed"
            return self._refuse(state, play, seen, code, text, _ARTICLES.get(action, "6(3)"))
        stake = self._stake(play, seat)
        if amount and (action not in ("double", "split") or (stake and amount != stake)):
            article = _ARTICLES.get(action, "6(3)") if action != "split" else "16(2)"
            return self._refuse(state, play, seen, "wrong_amount", f"{text} for {amount}, the bet is {stake}", article)
        return self._decided(state, replace(play, round=witness(round_, seen)), seen, place, action)

    def _early(self, play: Play, hand: Hand) -> tuple[str, ...]:
        return ("surrender",) if not hand.ended and self._may_surrender(play, hand) else ()

    def _untaken(self, play: Play, seat: int, number: int, action: str) -> Play:
        """The money rests on such a decision, and the cards alone do not tell it: that it was told is kept."""
        if action not in ("double", "surrender", "five_cards") or not play.round.closed:
            return play
        if seat > self.options.seats or number > self.options.max_hands:
            return play
        told = any((one.seat, one.number) == (seat, number) and _said(one, action) for one in play.hands)
        return play if told else _doubted(play, f"{seat}.{number}")

    def _contradicted(self, state: BlackjackState, undone: Play, seen: Envelope, *, proven: bool) -> Step:
        """Neither word counts until one is told again, unless the cards prove which it was: a stand, or a hit."""
        name = _name(undone.hands[undone.turn])
        play = undone if proven else _doubted(undone, name)
        return self._suspend(state, play, seen, f"hand {name} was told two decisions before its card came")

    def _decided(self, state: BlackjackState, play: Play, seen: Envelope, place: int, action: str) -> Step:
        hands = play.hands
        hand = hands[place]
        if play.refused or play.contradicted:
            # Who gives up before its turn has not said whose the next card is.
            left = tuple(name for name in play.contradicted if name != _name(hand))
            play = replace(play, refused=play.refused and place != play.turn, contradicted=left)
        match action:
            case "hit":
                return replace(state, play=replace(play, asked=True)), ()
            case "double":
                round_ = self._added(play.round, hand.seat, hand.number, "double")
                hand = replace(hand, doubled=self._modality(hand))
                hands = (*hands[:place], hand, *hands[place + 1 :])
                return replace(state, play=replace(play, round=round_, hands=hands, asked=True)), ()
            case "split":
                return replace(state, play=self._split(play, place)), ()
            case "surrender":
                hand = replace(hand, ended="surrender")
            case "five_cards":
                hand = replace(hand, ended="five_cards")
            case _:
                hand = _stood(hand)
        return self._go(state, replace(play, hands=(*hands[:place], hand, *hands[place + 1 :])), seen)

    def _split(self, play: Play, place: int) -> Play:
        """Art. 16(1)-(2): a new hand after the seat's last, with a bet like the first."""
        hand = play.hands[place]
        last = max(n for n, one in enumerate(play.hands) if one.seat == hand.seat)
        number = play.hands[last].number + 1
        new = Hand(hand.seat, number, hand.cards[1:], split=True, split_from=hand.number)
        kept = replace(hand, cards=hand.cards[:1], split=True)
        hands = [*play.hands[:place], kept, *play.hands[place + 1 :]]
        hands.insert(last + 1, new)
        return replace(play, hands=tuple(hands), round=self._added(play.round, hand.seat, number, "main"))

    def _added(self, round_: Round, seat: int, number: int, bet: str) -> Round:
        """What a split or a double lays: for each bettor as much as his first bet."""
        more = tuple(
            Wager(seat, bet + one.bet[4:], one.amount, number)
            for one in round_.wagers
            if one.seat == seat and one.hand == 1 and _is_main(one.bet)
        )
        return replace(round_, wagers=round_.wagers + more) if more else round_

    def _stake(self, play: Play, seat: int) -> int:
        """The first bets on a seat, 0 where they are not known."""
        if play.lost:
            return 0
        return sum(one.amount for one in play.round.wagers if one.seat == seat and one.hand == 1 and _is_main(one.bet))

    def _before_second(self, play: Play) -> bool:
        """Whether the bank's second card is still unknown to everybody, and may be insured against."""
        known = play.shown or play.peeked or play.strays or len(play.bank) > 1 + self._hole
        return play.dealt == play.first_deal and not known

    def _insure(
        self, state: BlackjackState, play: Play, seen: Envelope, seat: int, amount: int, *, chip: bool = False
    ) -> Step:
        """Art. 12(1): against an ace, from half the bet to all of it, before the seat decides.

        A chip lies beside those told before; a person tells the whole.
        """
        round_ = play.round
        laid = next((one.amount for one in round_.wagers if (one.seat, one.bet) == (seat, "insurance")), 0)
        adds = chip and seat not in play.uncounted
        whole = laid + amount if adds else amount
        text = f"seat {seat}: insurance {whole}" if whole else f"seat {seat}: insurance"
        if seat in play.insured and not adds:
            if not amount or amount == laid or (chip and not laid):
                return replace(state, play=_seen(play, seen)), ()
            if laid:
                return self._refuse(state, play, seen, "insured_twice", text, "12(1)")
        hands = [hand for hand in play.hands if hand.seat == seat]
        undecided = len(hands) == 1 and len(hands[0].cards) == 2 and not hands[0].doubled
        # A blackjack that lies open has ended by itself, one that lies face down by its decision.
        ends = ("",) if undecided and self._hides(hands[0]) else ("", "blackjack")
        open_ = undecided and hands[0].ended in ends and not (play.asked and self._at_turn(play, seat))
        if not open_ or not self._before_second(play) or play.bank[0][0] != "A":
            return self._refuse(state, play, seen, "decision_not_allowed", text, "12(1)")
        stake = self._stake(play, seat)
        most = stake if self.options.insurance == "half_to_whole" else (stake + 1) // 2
        enough = stake <= 2 * whole
        if stake and (whole > most or not (enough or chip)):
            return self._refuse(state, play, seen, "wrong_amount", f"{text}, the bet is {stake}", "12(1)")
        round_ = witness(round_, seen)
        if whole and (adds or not chip):
            others = tuple(one for one in round_.wagers if (one.seat, one.bet) != (seat, "insurance"))
            round_ = replace(round_, wagers=(*others, Wager(seat, "insurance", whole)))
        insured = (*play.insured, seat) if enough and seat not in play.insured else play.insured
        uncounted = play.uncounted if adds or seat in play.uncounted else (*play.uncounted, seat)
        return self._taken(state, replace(play, round=round_, insured=insured, uncounted=uncounted), seen)

    def _insured_whole(self, play: Play, seen: Envelope) -> Play:
        """Art. 12(1): what was laid on insurance in chips and came to less than half the bet goes back."""
        round_ = play.round
        for one in round_.wagers:
            if one.bet == "insurance" and one.seat not in play.insured:
                text = f"seat {one.seat}: insurance {one.amount}, less than half the bet: given back"
                round_ = self._irregular(round_, "wrong_amount", text, "12(1)", seen)
                round_ = replace(round_, wagers=tuple(kept for kept in round_.wagers if kept != one))
        return play if round_ is play.round else replace(play, round=round_)

    def _taken(self, state: BlackjackState, play: Play, seen: Envelope) -> Step:
        """A decision that others do not wait for: while the round waits for a person, nothing follows from it."""
        return (replace(state, play=play), ()) if play.round.suspended else self._go(state, play, seen)

    def _at_turn(self, play: Play, seat: int) -> bool:
        return play.turn < len(play.hands) and play.hands[play.turn].seat == seat

    def _may_take_even_money(self, play: Play) -> bool:
        """Art. 10(3): against an ace, a figure or a ten, before the bank's second card is known."""
        return self._before_second(play) and PIPS[play.bank[0]] in (1, 10)

    def _even_money(self, state: BlackjackState, play: Play, seen: Envelope, seat: int) -> Step:
        """Art. 10(3): a blackjack is paid like any win, before the bank's second card is known."""
        place = next((n for n, hand in enumerate(play.hands) if hand.seat == seat), None)
        hand = play.hands[place] if place is not None else Hand(seat)
        if hand.ended == "even_money":
            return replace(state, play=_seen(play, seen)), ()
        asks = is_blackjack(hand.cards) and not hand.split and hand.ended in ("", "blackjack")
        if not asks or not self._may_take_even_money(play):
            return self._refuse(state, play, seen, "decision_not_allowed", f"seat {seat}: even_money", "10(3)")
        assert place is not None
        hands = (*play.hands[:place], replace(hand, ended="even_money"), *play.hands[place + 1 :])
        return self._taken(state, replace(play, round=witness(play.round, seen), hands=hands), seen)

    def _refuse(self, state: BlackjackState, play: Play, seen: Envelope, code: str, text: str, article: str) -> Step:
        return replace(state, play=replace(play, round=self._irregular(play.round, code, text, article, seen))), ()

    # ---- the bank

    def _peek_due(self, play: Play) -> bool:
        """Art. 5(2)(3)(3): under an ace or a ten the bank looks whether it has blackjack."""
        return (
            self._peeks
            and not play.peeked
            and not play.shown
            and play.dealt == play.first_deal
            and PIPS[play.bank[0]] in (1, 10)
        )

    def _peek(self, state: BlackjackState, seen: Envelope, *, blackjack: bool) -> Step:
        play = state.play
        article = "5(2)(3)(3)"
        if play is None or not play.round.closed:
            return state, self._note("peek_without_deal", "a peek, but no hole card lies there", article, seen)
        if play.round.suspended or play.peeked == ("yes" if blackjack else "no"):
            return replace(state, play=_seen(play, seen)), ()
        if play.peeked:
            return self._suspend(state, play, seen, "the peek reader said two things of one hole card")
        if not self._peek_due(play):
            text = "the bank looked at its hole card where the text lets it not"
            return self._refuse(state, play, seen, "peek_not_due", text, article)
        if is_blackjack(play.bank) != blackjack:
            return self._suspend(state, play, seen, "the peek reader and the shoe contradict each other")
        play = replace(play, round=witness(play.round, seen), peeked="yes" if blackjack else "no")
        if blackjack:
            hands = tuple(hand if hand.ended else self._judged(play, hand) for hand in play.hands)
            play = replace(play, hands=hands, asked=False)
        return self._go(state, play, seen)

    def _draws(self, bank: tuple[str, ...]) -> bool:
        """Art. 6(1), 6(6): whether the bank must take a card."""
        total, soft = count(bank)
        if total != 17 or not soft:
            return total <= 16
        match self.options.soft_17:
            case "ace_six":
                return len(bank) == 2
            case "any_soft":
                return True
            case _:
                return False

    def _enough(self, bank: tuple[str, ...]) -> int:
        """After how many cards the bank had to take no more."""
        return next((taken for taken in range(2, len(bank)) if not self._draws(bank[:taken])), len(bank))

    def _bank_next(self, play: Play) -> bool:
        return play.turn == len(play.hands) and len(play.bank) == 1 and play.dealt == play.first_deal

    def _needs(self, play: Play) -> bool:
        """Whether the bank takes one more card."""
        bank = play.bank
        always = self.options.bank_draws == "always"
        compared = always or any(hand.ended in ("stand", "twenty_one") for hand in play.hands)
        if len(bank) == 1:
            if compared:
                return True
            # Only a blackjack of the bank can still matter: to a blackjack, or to an insurance.
            asks = bool(play.insured) or any(hand.ended == "blackjack" for hand in play.hands)
            return asks and PIPS[bank[0]] in (1, 10)
        return compared and self._draws(bank)

    def _go(self, state: BlackjackState, play: Play, seen: Envelope) -> Step:
        """The next hand without an end, or the bank."""
        hands, turn = play.hands, play.turn
        if self._peek_due(play):
            return replace(state, play=play), ()
        while turn < len(hands) and hands[turn].ended:
            turn += 1
        play = replace(play, turn=turn)
        if turn < len(hands):
            # A double that a correction left waiting for its turn has decided.
            if hands[turn].doubled and len(hands[turn].cards) == 2:
                play = replace(play, asked=True)
            return replace(state, play=play), ()
        if self._hole and not play.shown:
            play = replace(play, shown=True)
        return (replace(state, play=play), ()) if self._needs(play) else self._end(state, play, seen)

    # ---- doubt

    def _suspend(self, state: BlackjackState, play: Play, seen: Envelope, reason: str, remedy: str = CORRECT) -> Step:
        round_, verdicts = suspend(play.round, seen, reason, remedy)
        return replace(state, play=replace(play, round=round_)), verdicts

    def _unreadable(self, state: BlackjackState, seen: Envelope) -> Step:
        play = state.play
        remedy = BURN if state.burn else CORRECT
        if state.burn:
            # It may have been one of the burn, or none at all.
            state = replace(state, burn=UNSURE)
            if play is None or not play.round.closed:
                return state, ()
        if play is None:
            note = self._note("unreadable_between_rounds", "a card may have left the shoe", "5(1)", seen)
            return self._maybe_burnt(state), note
        if play.round.closed:
            return self._suspend(state, _unread(play), seen, "a card could not be read", remedy)
        state, play, verdicts = self._close(state, play, seen)
        state, held = self._suspend(state, _unread(play), seen, _before_bell(play))
        return state, verdicts + held

    def _exposed(self, state: BlackjackState, seen: Envelope, name: str) -> Step:
        """Art. 5(1)(1): a card that should lie face down was seen. What follows is for the floor to say."""
        play = state.play
        if play is None or not play.round.closed:
            return state, ()
        if key := _named(name):
            name = f"{key[0]}.{key[1]}"
        down = self._laid(play)["hands"].get(name, ())
        if UNKNOWN not in down:
            return replace(state, play=_seen(play, seen)), ()
        round_ = self._irregular(play.round, "card_exposed", f"a card of {name} was seen", "5(1)(1)", seen)
        return self._suspend(state, replace(play, round=round_), seen, "a card that should lie face down was seen")

    def _missed(self, state: BlackjackState, seen: Envelope) -> Step:
        """Bets may have been laid or taken back; before the first card it is not known which seats play, either."""
        play = state.play
        burn = UNSURE if state.burn else 0
        if play is None:
            state = self._maybe_burnt(state) if state.count and not burn else replace(state, burn=burn)
            return replace(state, unsure=state.unsure or bool(state.count or state.seats or state.fresh)), ()
        if play.round.closed:
            play = replace(play, unsure=play.unsure or not play.dealt, lost=True, unread=UNSURE)
            remedy = NAME_SEATS if play.unsure else CORRECT
            state = replace(state, unsure=True, burn=burn)
            return self._suspend(state, play, seen, "events of this round may be missing", remedy)
        play = replace(_seen(play, seen), unsure=True, lost=True)
        return replace(state, unsure=True, burn=burn, play=play), ()

    def _corrected(self, state: BlackjackState, seen: Envelope, laid: Mapping[str, tuple[str, ...]]) -> Step:
        """Art. 5(1)(2): what was dealt wrongly is put right, and the round goes on from there."""
        play = state.play
        if play is None:
            if state.last is None:
                return state, self._note("correction_without_round", "no round is open", "5(1)(2)", seen)
            play = replace(state.last, reopened=True)
        elif not play.round.closed:
            text = "hands were corrected before the bell"
            return self._refuse(state, play, seen, "correction_before_deal", text, "5(1)(2)")
        before = play
        play = replace(play, round=replace(witness(play.round, seen), suspended=""))
        fixed = self._relaid(play, laid, seen)
        if fixed is None:
            remedy = NAME_SEATS if before.unsure or not before.hands else CORRECT
            reason = "no deal gives the corrected hands"
            return self._suspend(state, replace(before, round=play.round), seen, reason, remedy)
        doubt, remedy = self._left_open(fixed, before)
        if doubt:
            return self._suspend(state, replace(before, round=play.round), seen, doubt, remedy)
        lie, lay = Counter(_cards(fixed)), Counter(_cards(before))
        told = lay - Counter(before.entered) + Counter(before.strays)
        entered = tuple((lie - told).elements())
        fixed = replace(fixed, entered=entered, strays=(), unread=0, unsure=False, lost=False, refused=False)
        seats = tuple(hand.seat for hand in fixed.hands)
        uncounted = seats if before.lost and fixed.dealt == fixed.first_deal else fixed.uncounted
        fixed = replace(fixed, uncounted=uncounted, corrected=True)
        named = before.unsure or not before.hands
        if named:
            mains = any(_is_main(one.bet) for one in before.round.wagers)
            state = replace(state, unsure=False, seats=state.seats if mains else seats)
        strays = bool(Counter(before.strays) - (lie - lay))
        if self._burn_uncertain(state, fixed, named=named, strays=strays, waited=bool(before.round.suspended)):
            # The next correction says that it is done.
            state = replace(state, burn=0 if fixed.dealt else UNSURE)
            fixed = replace(fixed, strays=before.strays, burns=fixed.burns and not fixed.dealt)
            return self._suspend(state, fixed, seen, BURNT, BURN)
        state = replace(state, burn=0 if fixed.dealt else max(state.burn, 0), streaks=fixed.streaks)
        if fixed.dealt < fixed.first_deal:
            return replace(state, play=fixed), ()
        return self._go(state, fixed, seen)

    def _burn_uncertain(self, state: BlackjackState, play: Play, *, named: bool, strays: bool, waited: bool) -> bool:
        """Whether a person must say if the burn is done.

        Who `named` the seats was asked for nothing else; `strays`, told while the round `waited`, may be burnt cards.
        """
        if not play.dealt:
            return (named and state.burn == UNSURE) or (strays and state.burn > 0)
        return waited and play.burns and self._bank_next(play) and self._needs(play)

    def _left_open(self, play: Play, before: Play) -> tuple[str, str]:
        """What the round rests on though no correction can say it, and the remedy; nothing where there is none."""
        if self._hole and play.dealt == play.first_deal - 1:
            # 5(2)(3)(2): only the hole card was not named. Unless all cards that came out are, it may lie there.
            out = before.dealt + len(before.strays) + before.unread
            if before.unread == UNSURE or play.dealt < out:
                return "whether the bank's hole card lies there is not known", CORRECT
        decided = _last_drawn(play.hands)
        for place, hand in enumerate(play.hands):
            name = _name(hand)
            doubted = name in play.contradicted
            passed = not hand.ended and place < decided
            if doubted and (len(hand.cards) == 3 or passed):  # with more it was to hit
                return f"hand {name} was told a decision that was not taken, and the cards do not prove it", EARLIER
            if hand.ended or not (passed or self._second_seen(play)):
                continue
            if hand.doubled and len(hand.cards) == 2:
                return f"hand {name} was doubled, and its third card is not named", CORRECT
            if self._second_seen(play):
                again = EARLIER if doubted else CORRECT
                return f"hand {name} must decide again, but the bank's second card is seen", again
        if self._third_unknown(play):
            return "which hand was split again is not known, and three sevens may depend on it", EARLIER
        return "", ""

    def _third_unknown(self, play: Play) -> bool:
        """Art. 13(2)(2): whether a bet rests on a third card that nobody can tell from the hands."""
        if "sevens" not in self._families:
            return False
        bets = play.round.wagers
        told = any(_is_main(one.bet) for one in bets)
        for seat, group in groupby(play.hands, key=lambda hand: hand.seat):
            mine = tuple(group)
            if len(mine) < 3:
                continue
            first = (mine[0].cards[0], mine[1].cards[0])
            laid = any(one.bet == f"sevens:{seat}" or (one.seat, one.bet) == (seat, "sevens") for one in bets)
            if (laid or not told) and len({sevens(first, third) for third in third_cards(mine)}) > 1:
                return True
        return False

    def _second_seen(self, play: Play) -> bool:
        """Whether everybody has seen the bank's second card: nobody decides any more."""
        return (self._hole and play.shown) or len(play.bank) > 1 + self._hole

    def _relaid(self, play: Play, laid: Mapping[str, tuple[str, ...]], seen: Envelope) -> Play | None:
        """The round with the hands as they lie; None where arts. 5 and 6 give no such hands."""
        named: dict[tuple[int, int], tuple[str, ...]] = {}
        for name, cards in laid.items():
            key = _named(name)
            if any(card not in PIPS for card in cards) or (key is None and name != DEALER) or len(cards) > 22:
                return None
            if key in named:
                return None
            if key is not None:
                named[key] = cards
        bank = laid.get(DEALER, play.bank)
        if self._hole and len(bank) == 1 and len(play.bank) > 1:
            bank = (*bank, play.bank[1])
        before = play
        if play.lost:
            play = _without_bets(play)
        same = bank[:2] == play.bank[:2] or (play.peeked == "yes" and is_blackjack(bank[:2]))
        # A needless card that counted does so still, where it lies as it lay.
        taken = self._enough(play.bank) + 1
        extra = play.extra and bank[:taken] == play.bank[:taken]
        play = replace(play, bank=bank, peeked=play.peeked if same else "", extra=extra)
        if play.unsure or not play.hands:
            seats = tuple(sorted(seat for seat, number in named if number == 1))
            if not seats or seats[-1] > self.options.seats:
                return None
            play = self._seated(play, seats, seen)
        for key in sorted(named):
            play_ = self._with_hand(play, *key, named[key])
            if play_ is None:
                return None
            play = play_
        if self._in_first_deal(play):
            return self._begun(play)
        # Hands that a person entered before, one by one maybe, say nothing of the order of the deal.
        return self._going_on(_with_origins(play, () if before.corrected else before.hands), before, seen)

    def _with_hand(self, play: Play, seat: int, number: int, cards: tuple[str, ...]) -> Play | None:
        """The round with these cards in that hand; the next number of a seat is a split that was not told."""
        mine = [hand for hand in play.hands if hand.seat == seat]
        if number <= len(mine):
            hands = tuple(
                replace(hand, cards=cards) if (hand.seat, hand.number) == (seat, number) else hand
                for hand in play.hands
            )
            return replace(play, hands=hands)
        if not mine or number != len(mine) + 1 or number > self.options.max_hands:
            return None
        place = max(n for n, hand in enumerate(play.hands) if hand.seat == seat)
        split = [replace(hand, split=True) if hand.seat == seat else hand for hand in play.hands]
        split.insert(place + 1, Hand(seat, number, cards, split=True, split_from=1 if number == 2 else 0))
        return replace(play, hands=tuple(split), round=self._added(play.round, seat, number, "main"))

    def _in_first_deal(self, play: Play) -> bool:
        short = len(play.bank) < (2 if self._hole else 1)
        return short or any(not hand.split and len(hand.cards) < 2 for hand in play.hands)

    def _begun(self, play: Play) -> Play | None:
        """A first deal that is not complete: it must be the beginning of one."""
        hands = tuple(Hand(hand.seat, 1, hand.cards) for hand in play.hands)
        wagers = tuple(one for one in play.round.wagers if not one.bet.startswith(("double", "insurance")))
        round_ = replace(play.round, wagers=wagers)
        whole = replace(play, round=round_, hands=hands, turn=0, asked=False, peeked="", shown=False, insured=())
        whole = replace(whole, uncounted=(), contradicted=())
        lengths = [0] * (len(hands) + 1)
        dealt = sum(len(hand.cards) for hand in hands) + len(play.bank)
        for done in range(dealt):
            lengths[self._receiver(replace(whole, dealt=done))] += 1
        if lengths != [*(len(hand.cards) for hand in hands), len(play.bank)] or any(hand.split for hand in play.hands):
            return None
        return replace(whole, dealt=dealt)

    def _going_on(self, play: Play, before: Play, seen: Envelope) -> Play | None:
        """A first deal that is complete, and what followed it."""
        bank = play.bank
        # 5(2)(3)(4): a peek that saw a blackjack ended the hands and showed the hole card. It was none.
        unpeeked = before.peeked == "yes" and not play.peeked
        if unpeeked:
            play = replace(play, shown=False)
        begun = self._second_seen(play)
        play = replace(play, dealt=play.first_deal, turn=0, asked=False, shown=begun)
        if sum(not self._draws(bank[:taken]) for taken in range(2, len(bank))) > play.extra:
            return None
        if bank[0][0] != "A":
            play = self._uninsured(play, seen)
        # 6(3): from the left; a hand before one with further cards has decided.
        decided = _last_drawn(play.hands)
        lay = {_name(hand): len(hand.cards) for hand in before.hands}
        hands: list[Hand] = []
        for place, hand in enumerate(play.hands):
            if not self._possible(play, hand):
                return None
            name = _name(hand)
            doubted = name in play.contradicted
            # Who was given a further card had not stood.
            drew = hand.ended in _STOOD and not hand.doubled and len(hand.cards) > lay.get(name, 0)
            holds = self._still_ended(hand) and not drew
            # Even money is the blackjack's alone: it can have said nothing of what was not taken.
            unsaid = (doubted and hand.ended != "even_money") or (unpeeked and hand.ended in _STOOD)
            undone = holds and (unsaid or _barred(hand, bank[0]))
            if holds and not undone:
                one = _stood(hand) if hand.ended in _STOOD else hand
            else:
                one = self._judged(play, replace(hand, ended=""))
            if undone or doubted or (one.doubled and len(one.cards) == 2):
                hands.append(one)  # its decision must be told again, or its card
                continue
            if not one.ended and (begun or place < decided):
                if len(one.cards) < 2:
                    return None
                one = _stood(one)
            hands.append(one)
        turn = next((n for n, hand in enumerate(hands) if not hand.ended), len(hands))
        return replace(play, hands=tuple(hands), turn=turn)

    def _uninsured(self, play: Play, seen: Envelope) -> Play:
        """Art. 12(1): against an ace only; what was laid goes back."""
        round_ = play.round
        chips = (one.seat for one in round_.wagers if one.bet == "insurance")
        for seat in dict.fromkeys((*play.insured, *chips)):
            round_ = self._irregular(round_, "decision_not_allowed", f"seat {seat}: insurance", "12(1)", seen)
        kept = tuple(one for one in round_.wagers if one.bet != "insurance")
        return play if round_ is play.round else replace(play, round=replace(round_, wagers=kept), insured=())

    def _possible(self, play: Play, hand: Hand) -> bool:
        """Whether arts. 6(4), 16 and 17(2) give such a hand."""
        cards = hand.cards
        if not cards or any(count(cards[:taken])[0] >= 21 for taken in range(2, len(cards))):
            return False
        if hand.split and any(
            one.seat == hand.seat and one.cards[:1] and one.cards[0][0] != cards[0][0] for one in play.hands
        ):
            return False
        if hand.doubled and len(cards) == 2 and count(cards)[0] == 21:
            return False
        return len(cards) <= (2 if hand.split and cards[0][0] == "A" else 3 if hand.doubled else 22)

    def _still_ended(self, hand: Hand) -> bool:
        """Whether a decision that was told holds for the cards as they lie; the ends without one are judged again."""
        if self._hides(hand) and hand.ended in _STOOD:
            return count(hand.cards)[0] <= 21 and len(hand.cards) >= (3 if hand.doubled else 2)
        match hand.ended:
            case "stand":
                return count(hand.cards)[0] < 21 and len(hand.cards) >= (3 if hand.doubled else 2)
            case "surrender":
                return len(hand.cards) == 2
            case "even_money" | "blackjack":
                return is_blackjack(hand.cards) and not hand.split
            case "five_cards":
                return len(hand.cards) == 5 and count(hand.cards)[0] <= 21
            case _:
                return False

    def _declared_void(self, state: BlackjackState, seen: Envelope, reason: str) -> Step:
        play = state.play
        if play is None:
            if state.last is None:
                return state, self._note("void_without_round", "no round is open or unpaid", "5(1)(2)", seen)
            play = replace(state.last, reopened=True)
        return self._void(state, play, seen, reason)

    # ---- the cards and their device

    def _shoe_started(self, state: BlackjackState, seen: Envelope, decks: int) -> Step:
        verdicts: tuple[Verdict, ...] = ()
        play = state.play
        if play is not None and play.round.closed and (play.dealt or play.round.suspended):
            state, verdicts = self._void(state, play, seen, play.round.suspended or "never_completed")
            play = None
        if decks not in (0, self.options.decks):
            text = f"{decks} decks were put in play, authorised are {self.options.decks}"
            verdicts += self._note("wrong_number_of_decks", text, "1(2)", seen)
        if play is not None:
            play = replace(_seen(play, seen), first=True, burns=False)
        left = 0 if play is not None and play.round.closed and self._rounds > 0 else self._rounds
        return replace(state, play=play, burn=self._burn, left=left, fresh=play is None), verdicts

    def _cut_card(self, state: BlackjackState, seen: Envelope) -> Step:
        """Art. 2(2)(1): the round that is being dealt is the last before a shuffle; between two, the next one is."""
        play = state.play
        if self.options.device != "shoe":
            text = "a white card came out that does not belong into the device"
            if play is None:
                return state, self._note("white_card", text, "1(3)", seen)
            return self._refuse(state, play, seen, "white_card", text, "1(3)")
        if state.left != UNLIMITED:
            return state, ()
        if play is None:
            return replace(state, left=1), ()
        return replace(state, left=0 if play.round.closed else 1, play=_seen(play, seen)), ()

    def _emptied(self, state: BlackjackState, seen: Envelope) -> Step:
        play = state.play
        if self.options.device == "continuous":
            return state, ()
        state = replace(state, left=0)
        if play is None or not play.round.closed:
            return state, ()
        if not self._waits_for_card(state, play):
            return replace(state, play=_seen(play, seen)), ()
        return self._suspend(state, play, seen, "the cards ended before the round did", RESHUFFLE)

    def _waits_for_card(self, state: BlackjackState, play: Play) -> bool:
        return not play.hands or bool(play.round.suspended) or self._due(state, play)["kind"] == "card"

    def _returned(self, state: BlackjackState, seen: Envelope) -> Step:
        """Art. 2(2)(4): into the shuffler after the round."""
        play = state.play
        if self.options.device != "continuous" or play is None or not play.dealt:
            return state, ()
        text = "cards went back into the shuffler before the end of the round"
        return self._refuse(state, play, seen, "cards_returned_early", text, "2(2)(4)")

    # ---- the ends of a round

    def _paid(self, state: BlackjackState, seen: Envelope) -> Step:
        play, last = state.play, state.last
        if play is None:
            return (state if state.paid or last is None else replace(state, paid=True)), ()
        if not play.round.closed:
            return state, ()
        doubted = play.reopened and play.round.suspended and last is not None
        if doubted and last is not None and (play.hands, play.bank) == (last.hands, last.bank):
            # Hands that no deal gives were entered, then the prizes paid: the first result stands, with its bets.
            round_ = replace(witness(play.round, seen), suspended="", wagers=last.round.wagers)
            return self._end(replace(state, paid=True), replace(last, round=round_, reopened=True), seen)
        if not play.dealt:
            return replace(state, play=_seen(play, seen)), ()
        return self._suspend(state, play, seen, "the prizes were paid, but the round is not over")

    def _void(self, state: BlackjackState, play: Play, seen: Envelope, reason: str) -> Step:
        """Art. 5(1)(2): the cards of the round are cancelled. Of its bets nothing is said: they come back."""
        if play.lost:
            play = _without_bets(play)
        streaks = play.streaks if play.hands else state.streaks
        void = Void(reason, "returned", streak_bets="carried" if streaks else "")
        outcome = self._laid(play) if play.dealt else None
        result = voided(witness(play.round, seen), self._terms, void, (self._cite("5(1)(2)"),), outcome)
        state = replace(state, play=None, last=None, paid=False, streaks=streaks)
        return state, (Corrected(replace(result, supersedes=result.round)) if play.reopened else Voided(result),)

    def _end(self, state: BlackjackState, play: Play, seen: Envelope) -> Step:
        play = self._insured_whole(play, seen)
        result, streaks = self._resolve(play)
        last = replace(play, reopened=False, shown=True)
        state = replace(state, play=None, last=last, streaks=streaks)
        return state, (Corrected(replace(result, supersedes=result.round)) if play.reopened else Resolved(result),)

    def _compare(self, play: Play, total: int, *, blackjack: bool) -> tuple[list[Compared], dict[str, None]]:
        """Every hand against the bank's total, and the articles that decide."""
        law: dict[str, None] = {}
        compared = []
        spared = self._spared(play.hands) if blackjack else {}
        taken = len(play.bank)
        for place, hand in enumerate(play.hands):
            special = 3 if self.options.special_prize == "on_top" and is_special(hand.cards) else 0
            double = ""
            match hand.ended:
                case "bust":
                    law["7(2)"] = None
                    result, main, won = "lose", "", -1
                case "surrender":
                    law["18(1)"] = None
                    result, main, won = "surrender", "-1/2", -1
                case "even_money":
                    law["10(3)"] = None
                    result, main, won = "win", "1", 1
                case "five_cards":
                    law["19(1)"] = None
                    result, main, won = "win", "1/2", 1
                case "special":
                    law["15"] = None
                    result, main, double, won = "win", "3", "3", 1
                case "blackjack":
                    if blackjack:
                        law["11(1)(1)"] = None
                        result, main, won = "push", "0", 0
                    else:
                        law["10(5)" if total == 21 and taken > 2 else "10(2)"] = None
                        result, main, won = "win", "3/2", 1
                case _:
                    mine = count(hand.cards)[0]
                    if blackjack:
                        law["10(6)" if mine == 21 else "9"] = None
                        result, main, double, won = self._against_blackjack(hand, law, spared=place in spared)
                    elif total > 21 or mine > total:
                        law["10(4)" if mine == 21 and len(hand.cards) > 2 else "9"] = None
                        result, main, double, won = "win", "1", "1", 1
                    elif mine == total:
                        law["11(1)(2)"] = None
                        result, main, double, won = "push", "0", "0", 0
                    else:
                        law["9"] = None
                        result, main, double, won = "lose", "", "", -1
            if special:
                law["15"] = None
                main, double = (str(special + (int(pays) if pays else -1)) for pays in (main, double))
            compared.append(Compared(hand, result, main, double if hand.doubled else "", won))
        return compared, law

    def _against_blackjack(self, hand: Hand, law: dict[str, None], *, spared: bool) -> tuple[str, str, str, int]:
        """Arts. 10(7), 16(6), 17(3): only the first bet is lost. `spared`: another hand lost it already."""
        double = ""
        if hand.doubled in (1, 2):
            law["17(3)"] = None
            double = "0"
        elif hand.doubled == 3 and self.options.limit_double_11:
            law["10(7)"] = None
            double = "0"
        if spared:
            law["16(6)"] = None
            return "returned", "0", double, 0
        return "lose", "", double, -1

    def _spared(self, hands: Hands) -> dict[int, None]:
        """Art. 16(6): of a seat that split, the open hands that do not lose against a bank blackjack."""
        spared: dict[int, None] = {}
        paid_for = {hand.seat for hand in hands if hand.split and hand.ended == "bust"}
        for place, hand in enumerate(hands):
            if hand.split and hand.ended in ("stand", "twenty_one"):
                if hand.seat in paid_for:
                    spared[place] = None
                paid_for.add(hand.seat)
        return spared

    def _resolve(self, play: Play) -> tuple[Result, tuple[Streak, ...]]:
        bank = play.bank
        blackjack = is_blackjack(bank)
        total = 21 if blackjack else count(bank)[0]
        compared, law = self._compare(play, total, blackjack=blackjack)
        wins: list[Win] = []
        parts: list[Win] = []
        pushes: list[str | Push] = []
        for one in compared:
            hand = one.hand
            for bet, pays in (("main", one.main), ("double", one.double)) if hand.doubled else (("main", one.main),):
                for name in self._names(play, hand.seat, bet):
                    if pays == "0":
                        pushes.append(Push(name, hand.seat, hand.number))
                    elif pays == "-1/2":
                        parts.append(Win(name, pays, seat=hand.seat, hand=hand.number))
                    elif pays:
                        wins.append(Win(name, pays, seat=hand.seat, hand=hand.number))
        if play.insured:
            law["12(2)" if blackjack else "12(3)"] = None
            if blackjack:
                wins += (Win("insurance", "2", seat=seat) for seat in play.insured)
        self._additional(play.hands, wins, law)
        streaks, decided = self._streaks(play, compared, wins, law) if play.streaks else ((), ())
        outcome = self._outcome(play, compared, total, blackjack=blackjack)
        if play.streaks:
            outcome["streaks"] = {str(one.seat): one.wins + 1 for one in streaks}
        round_ = play.round
        if decided:
            round_ = replace(round_, wagers=(*round_.wagers, *decided))
        if play.corrected:
            law["5(1)(2)"] = None
        result = resolved(
            round_,
            self._terms,
            outcome=outcome,
            winners=tuple(wins),
            pushes=tuple(pushes),
            announcements=_announced(compared, total, blackjack=blackjack),
            law=tuple(self._cite(article) for article in ("5(1)", self._dealing, "6", "8", *law)),
        )
        if parts and round_.wagers:
            # Half of a bet given up comes back: it is neither won nor a tie.
            settled = settle(
                round_.wagers, (*wins, *parts), pushes, chip=self._terms.chip, rounding=self._terms.rounding
            )
            result = replace(result, settlements=settled)
        if streaks:
            result = replace(result, stands=tuple(sorted({bet.bet for one in streaks for bet in one.bets})))
        return result, streaks

    def _names(self, play: Play, seat: int, bet: str) -> tuple[str, ...]:
        """The bet of the seat, and those of the others who bet on it, or may have."""
        if self.options.bettors == 1:
            return (bet,)
        others = {one.bet[4:] for one in play.round.wagers if one.seat == seat and _is_main(one.bet)}
        if not others:  # nobody told which there are
            others = {f":{place}" for place in range(2, self.options.bettors + 1)}
        return (bet, *(bet + place for place in sorted(others - {""})))

    def _outcome(self, play: Play, compared: list[Compared], total: int, *, blackjack: bool) -> dict[str, Any]:
        hands = {DEALER: play.bank}
        totals = {DEALER: total}
        ended: dict[str, str] = {}
        results: dict[str, str] = {}
        doubled = []
        for one in compared:
            hand = one.hand
            name = f"{hand.seat}.{hand.number}"
            hands[name] = hand.cards
            totals[name] = count(hand.cards)[0]
            ended[name] = hand.ended
            results[name] = one.result
            if hand.doubled:
                doubled.append(name)
        outcome: dict[str, Any] = {
            "hands": hands,
            "totals": totals,
            "ended": ended,
            "results": results,
            "blackjack": blackjack,
            "bust": total > 21,
        }
        if doubled:
            outcome["doubled"] = doubled
        return outcome

    # ---- additional bets

    def _of_two(self, one: str, two: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """What wins on the first two cards alone: bet, odds, articles. Pairs and sevens go on after a split."""
        pips = PIPS[one] + PIPS[two]
        totals = {pips}
        if self.options.ace_over_under == "free":
            aces = (one[0] == "A") + (two[0] == "A")
            totals = {pips + 10 * more for more in range(aces + 1)}
        pays, item = perfect_pair(one, two)
        found = (
            ("over_13", "1" if max(totals) > 13 else "", ("13(3)", "14(3)")),
            ("under_13", "1" if min(totals) < 13 else "", ("13(3)", "14(3)")),
            ("perfect_pair", pays, (f"13(4)({item})", f"14(4)({item})")),
        )
        return tuple(bet for bet in found if bet[1] and bet[0] in self._families)

    def _additional(self, hands: Hands, wins: list[Win], law: dict[str, None]) -> None:
        """Arts. 13, 14: what the first cards of every seat win."""
        for place, hand in enumerate(hands):
            if hand.number != 1:
                continue
            two = hands[place + 1].cards[0] if hand.split else hand.cards[1]
            found = self._on_two[hand.cards[0], two]
            if hand.cards[0][0] == two[0]:
                found += self._of_pair(tuple(one for one in hands if one.seat == hand.seat), two)
            for bet, pays, articles in found:
                wins.append(Win(bet, pays, seat=hand.seat))
                if bet in ACROSS:
                    wins.append(Win(f"{bet}:{hand.seat}", pays))
                for article in articles:
                    law[article] = None

    def _of_pair(self, mine: Hands, two: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """What wins on a pair and what followed it. Every split was of a pair; hands may end with further ones."""
        pairs = len(mine) - 1 + sum(hand.cards[0][0] == hand.cards[1][0] for hand in mine)
        found: list[tuple[str, str, tuple[str, ...]]] = []
        if "any_pair" in self._families:
            found.append(("any_pair", str(11 * pairs), ("13(1)", "14(1)")))
        thirds: tuple[str, ...] = ("",)
        if len(mine) > 1:
            thirds = third_cards(mine)
        elif self.options.three_sevens == "any" and len(mine[0].cards) > 2:
            thirds = mine[0].cards[2:3]
        # Of several it may have been what pays least; where a bet rests on it, it was asked for.
        pays, item = min((sevens((mine[0].cards[0], two), third) for third in thirds), key=lambda found: found[1])
        if pays and "sevens" in self._families:
            found.append(("sevens", pays, (f"13(2)({1 if item < 3 else 2})", f"14(2)({item})")))
        return tuple(found)

    def _streaks(
        self, play: Play, compared: list[Compared], wins: list[Win], law: dict[str, None]
    ) -> tuple[tuple[Streak, ...], tuple[Wager, ...]]:
        """Arts. 13(5), 16(7), 11(2), 18(3): where each button goes, and the bets that are decided."""
        open_: list[Streak] = []
        decided: list[Wager] = []
        for streak in play.streaks:
            mine = [one for one in compared if one.hand.seat == streak.seat]
            if not mine:
                law["13(5)(2)(vi)"] = None
                if self.options.streak_absent == "lost":
                    decided += streak.bets
                else:
                    open_.append(streak)
                continue
            balance = sum(one.won for one in mine)
            if any(one.hand.ended == "surrender" for one in mine):
                law["18(3)"] = None
                decided += streak.bets
            elif balance < 0:
                law["16(7)(3)" if len(mine) > 1 else "13(5)(2)(ii)"] = None
                decided += streak.bets
            elif balance == 0:
                law["16(7)(2)" if len(mine) > 1 else "11(2)"] = None
                open_.append(streak)
            else:
                law["16(7)(1)" if len(mine) > 1 else "13(5)(2)(iii)"] = None
                reached = streak.wins + 1
                for bet in streak.bets:
                    if STREAKS[bet.bet] == reached:
                        law["13(5)(2)(i)"] = None
                        law[f"14(5)({reached - 1})"] = None
                        wins.append(Win(bet.bet, STREAK_PAYS[reached], seat=streak.seat))
                        decided.append(bet)
                left = tuple(bet for bet in streak.bets if STREAKS[bet.bet] > reached)
                if left:
                    open_.append(Streak(streak.seat, left, reached))
        return tuple(open_), tuple(decided)

    # ---- words

    def _cite(self, article: str) -> str:
        """The article in the edition's numbering; kept, there are few."""
        said = self._cites.get(article)
        if said is None:
            said = self._cites[article] = self._cited(article)
        return said

    def _cited(self, article: str) -> str:
        if not self._2004:
            return f"Despacho 57/2009 art. {article}"
        head, _, rest = article.partition("(")
        if head == "11":
            return f"Despacho 56/2004 art. 11({rest.partition('(')[2]}"
        return f"Despacho 56/2004 art. {article}{' (42/2007)' if head in _AMENDED else ''}"

    def _irregular(self, round_: Round, code: str, text: str, article: str, seen: Envelope) -> Round:
        return irregular(round_, code, text, self._cite(article), seen)

    def _note(self, code: str, text: str, article: str, seen: Envelope) -> tuple[Verdict, ...]:
        return noted(code, text, self._cite(article), seen)


# All that a hand may decide at its turn, in the order in which it is offered.
_DECISIONS: Final = ("stand", "hit", "double", "split", "surrender", "five_cards", "even_money")
# Why a decision was not taken: the codes of these irregularities.
_REFUSALS: Final = frozenset(
    (
        *("decision_before_deal", "decision_before_peek", "decision_before_card", "decision_not_allowed"),
        *("cards_do_not_allow", "out_of_turn", "wrong_amount", "insured_twice"),
    )
)
# How a hand ends that takes no more card, and what ends with all its cards open (6(2), 10(3), 15, 19(1)).
_STOOD: Final = ("stand", "twenty_one", "blackjack")
_LAID_OPEN: Final = ("bust", "even_money", "five_cards", "special")

# The article that a decision which is not allowed offends.
_ARTICLES: Final = {
    "hit": "6(4)",
    "double": "17(1)",
    "split": "16",
    "surrender": "18(1)",
    "five_cards": "19(1)",
}


# What is called of a hand and of the bank, in Portuguese, Traditional Chinese and English.
LANGUAGES: Final = ("pt", "zh-Hant", "en")
_RESULTS: Final = {
    "win": ("ganha", "贏", "wins"),
    "lose": ("perde", "輸", "loses"),
    "push": ("empate", "和", "tie"),
    "surrender": ("desistência", "放棄", "surrendered"),
    "returned": ("devolvida", "退回", "comes back"),
}
_NATURAL: Final = ("Black Jack", "Black Jack", "Black Jack")


def _place(hand: Hand) -> tuple[str, str, str]:
    seat = (f"Lugar {hand.seat}", f"第{hand.seat}門", f"Seat {hand.seat}")
    if not hand.split:
        return seat
    number = hand.number
    return f"{seat[0]}, mão {number}", f"{seat[1]}第{number}手", f"{seat[2]}, hand {number}"


def _points(total: int) -> tuple[str, str, str]:
    return str(total), f"{total}點", str(total)


def _called(hand: Hand) -> dict[str, str]:
    """Art. 6(5): the total of the hand whose decision is awaited."""
    place, total = _place(hand), _points(count(hand.cards)[0])
    return {language: f"{place[n]}: {total[n]}" for n, language in enumerate(LANGUAGES)}


def _announced(compared: list[Compared], total: int, *, blackjack: bool) -> dict[str, str]:
    """Art. 7(1): the totals of the bank and of the seats, and how each ends."""
    pt, zh, en = _NATURAL if blackjack else _points(total)
    lines = ([f"Banca {pt}"], [f"莊家{zh}"], [f"Bank {en}"])
    for one in compared:
        place = _place(one.hand)
        points = _NATURAL if one.hand.ended == "blackjack" else _points(count(one.hand.cards)[0])
        result = _RESULTS[one.result]
        for n, line in enumerate(lines):
            line.append(f"{place[n]}: {points[n]}, {result[n]}" if n != 1 else f"{place[1]}{points[1]}，{result[1]}")
    return {"pt": "; ".join(lines[0]), "zh-Hant": "；".join(lines[1]), "en": "; ".join(lines[2])}


# ---- small facts


def _refused(round_: Round) -> str:
    """Why the last decision was not taken, where nothing was told since."""
    last = round_.irregularities[-1:]
    told = round_.evidence[-1:]
    return last[0].code if last and told == (last[0].event,) and last[0].code in _REFUSALS else ""


def _stood(hand: Hand) -> Hand:
    """The hand, which takes no more card."""
    total = count(hand.cards)[0]
    blackjack = is_blackjack(hand.cards) and not hand.split
    ended: End = "stand" if hand.doubled or total < 21 else "blackjack" if blackjack else "twenty_one"
    return replace(hand, ended=ended)


def _named(name: str) -> tuple[int, int] | None:
    """Seat and number of a hand that a person named; None for the bank's and for what is no name."""
    match = _NAME.fullmatch(name)
    return (int(match[1] or match[3]), int(match[2] or match[4] or 1)) if match else None


def _name(hand: Hand) -> str:
    return f"{hand.seat}.{hand.number}"


def _last_drawn(hands: Hands) -> int:
    """Art. 6(3): the last hand with a further card; those before it have decided. -1 where there is none."""
    return max((place for place, hand in enumerate(hands) if len(hand.cards) > 2), default=-1)


def _is_main(bet: str) -> bool:
    return bet == "main" or bet.startswith("main:")


def _barred(hand: Hand, up: str) -> bool:
    """Arts. 10(3), 18(1), 19(1): whether the bank's first card does not allow the decision that ended the hand."""
    match hand.ended:
        case "even_money":
            return PIPS[up] not in (1, 10)
        case "surrender" | "five_cards":
            return up[0] == "A"
        case _:
            return False


def _with_origins(play: Play, before: Hands) -> Play:
    """The round with what the cards say of where a hand comes from that a person entered."""
    hands = list(play.hands)
    for place, hand in enumerate(hands):
        if hand.number == 3 and not hand.split_from:
            mine = tuple(one for one in play.hands if one.seat == hand.seat)
            lay = tuple(one for one in before if one.seat == hand.seat)
            hands[place] = replace(hand, split_from=origin(hand, lay, mine))
    return replace(play, hands=tuple(hands))


def _masked(cards: tuple[str, ...], down: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(UNKNOWN if place in down else card for place, card in enumerate(cards)) if down else cards


def _cards(play: Play) -> list[str]:
    """All cards that lie in hands."""
    return [*play.bank, *(card for hand in play.hands for card in hand.cards)]


def _said(hand: Hand, action: str) -> bool:
    """Whether the decision was told of this hand before: said twice, it changes nothing."""
    match action:
        case "stand":
            return hand.ended in ("stand", "blackjack", "twenty_one", "bust", "special")  # by itself, too
        case "double":
            return bool(hand.doubled)
        case "split":
            return hand.split
        case _:
            return hand.ended == action


def _unheard(last: Play, seat: int, number: int, action: str) -> bool:
    """Whether that hand of the round may have said what nobody told of it in time."""
    told = action == "insurance" and seat in last.insured
    mine = [hand for hand in last.hands if (hand.seat, hand.number) == (seat, number)]
    # A stand that is older than a double may have been meant instead of it.
    return not told and any(not _said(hand, action) or (action == "stand" and hand.doubled) for hand in mine)


def _before_bell(play: Play) -> str:
    """Why a card that came while the bets were open is doubted: after a loss the bell may be among what is missing."""
    return "events of this round may be missing" if play.lost else "a card left the shoe before the bell"


def _unread(play: Play) -> Play:
    """One more card came out unread."""
    return play if play.unread == UNSURE else replace(play, unread=play.unread + 1)


def _unasked(play: Play) -> Play:
    """The round as it was before the hand at its turn asked for a card, and doubled for it maybe."""
    hand = play.hands[play.turn]
    if hand.doubled:
        mine, bets = (hand.seat, hand.number), play.round.wagers
        kept = tuple(one for one in bets if (one.seat, one.hand) != mine or not one.bet.startswith("double"))
        hands = (*play.hands[: play.turn], replace(hand, doubled=0), *play.hands[play.turn + 1 :])
        play = replace(play, round=replace(play.round, wagers=kept), hands=hands)
    return replace(play, asked=False)


def _doubted(play: Play, name: str) -> Play:
    """What that hand decided is not certain until it is told again."""
    return play if name in play.contradicted else replace(play, contradicted=(*play.contradicted, name))


def _astray(play: Play, action: str) -> Play:
    """A decision that brings a card is refused: the next card may be that hand's."""
    return replace(play, refused=True) if play.round.closed and action in ("hit", "double", "split") else play


def _without_bets(play: Play) -> Play:
    """The round with no bets: after a loss those told may have been taken back. Earlier rounds' streaks stand."""
    return replace(play, round=replace(play.round, wagers=()), streaks=play.streaks[: play.earlier])


def _seen(play: Play, seen: Envelope) -> Play:
    """The round rests on this event too."""
    return replace(play, round=witness(play.round, seen))
