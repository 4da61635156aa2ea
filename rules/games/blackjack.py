"""Blackjack as all texts have it: the receiver of the next card, the decisions of a hand, its result against the bank.

Called by the rulesets of the texts, which have articles, options and bets. `House` holds what a text or a house
chooses; all its methods are pure and give the next `Play`. A correction of the deal is in `blackjack_corrections.py`.
"""

from collections.abc import Iterable
from itertools import combinations_with_replacement
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from rules.games.cards import PIPS, RANKS, UNKNOWN, colour, rank, suit

# The ends of a hand.
End: TypeAlias = Literal[
    "", "stand", "twenty_one", "blackjack", "bust", "surrender", "even_money", "five_cards", "special"
]
Hands: TypeAlias = tuple["Hand", ...]
Doubt: TypeAlias = Literal["seats", "bets", "next_card", "mispulled"]
"""The doubts about a round.

`seats`: which seats play. `bets`: events are missing, so the bets are not known. `next_card`: a decision that brings a
card was refused, so the next card may be that hand's. `mispulled`: a card came without a request; a hand without a
reported decision may have asked for it.
"""

DEALER: Final = "dealer"
BANK: Final = -1
UNSURE: Final = -1
"""The number of unread cards after a loss of events."""
MAX_STRAYS: Final = 32
DECISIONS: Final = ("stand", "hit", "double", "split", "surrender", "five_cards", "even_money")
"""All decisions of a hand at its turn, in the order in which they are offered."""
BY_TOTAL: Final = 4
"""`Hand.doubled` where the total of the first two cards allowed it (`House.doubles_on`)."""
STOOD: Final = ("stand", "twenty_one", "blackjack")
"""The ends of a hand that takes no further card."""
LAID_OPEN: Final = ("bust", "even_money", "five_cards", "special")
"""The ends that open all cards of a hand."""


class Hand(Struct, frozen=True):
    """One hand of a seat. `doubled`: 1 on its first two cards, 2 on those of a split pair, 3 on eleven, BY_TOTAL.

    `split_from`: the number of the hand it was split from; 0 where a person entered it and it is unknown.
    """

    seat: int
    number: int = 1
    cards: tuple[str, ...] = ()
    ended: End = ""
    doubled: int = 0
    split: bool = False
    split_from: int = 0

    @property
    def name(self) -> str:
        """The hand's name in `deal.corrected`."""
        return f"{self.seat}.{self.number}"

    @property
    def total(self) -> int:
        """The best total. An ace that was one in the total of a double by total stays one."""
        cards = self.cards
        if self.doubled != BY_TOTAL or len(cards) < 3:
            return count(cards)[0]
        two = PIPS[cards[0]] + PIPS[cards[1]]
        return two + (11 if cards[2][0] == "A" and two <= 10 else PIPS[cards[2]])


class Play(Struct, frozen=True):
    """The cards of a round; `round` is its id, from the bell on.

    `first_deal`: the number of cards of the first deal; `dealt`: how many of them lie there so far; `turn` the hands
    that have decided; `asked`: that hand's card is on its way. `uncounted`: the seats whose chips on insurance are
    unknown, because a person entered the whole amount or some may be lost. `start`: the first round after a shuffle, or
    a later one; `burns`: it burns a card before the bank's second. `strays`: cards that came while the round waited for
    a person, `unread`: the number of unread ones, UNSURE after a loss; `entered`: cards of a correction that the shoe
    has not reported, but still may. `contradicted`: hands with refused or contradicting decisions that their cards may
    not settle, each until its decision is entered again. `extra`: the bank took a needless card, and it counts. `held`:
    unseen cards drawn by mistake, in their order; the next hands that ask for a card get them, or the bank.
    `discarded`: cards drawn or seen by mistake that belong to no hand.
    """

    hands: Hands = ()
    bank: tuple[str, ...] = ()
    first_deal: int = 0
    dealt: int = 0
    turn: int = 0
    asked: bool = False
    peeked: Literal["", "no", "yes"] = ""
    shown: bool = False
    start: Literal["first", "later", "burns"] = "later"
    insured: tuple[int, ...] = ()
    uncounted: tuple[int, ...] = ()
    round: str = ""
    corrected: bool = False
    extra: bool = False
    strays: tuple[str, ...] = ()
    unread: int = 0
    entered: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    held: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether bets are closed."""
        return bool(self.round)

    @property
    def cards(self) -> list[str]:
        """All cards in hands, or waiting for one."""
        return [*self.bank, *self.held, *(card for hand in self.hands for card in hand.cards)]

    def of(self, seat: int) -> Hands:
        """The hands of a seat."""
        return tuple(hand for hand in self.hands if hand.seat == seat)

    def with_hand(self, place: int, hand: Hand) -> "Play":
        """The play with another hand in that place."""
        return replace(self, hands=(*self.hands[:place], hand, *self.hands[place + 1 :]))

    def with_stray(self, card: str) -> "Play":
        """The play with one more card that belongs to no hand until a person decides."""
        return replace(self, strays=(*self.strays, card)[-MAX_STRAYS:])

    def with_unread(self) -> "Play":
        """The play with one more unread card."""
        return self if self.unread == UNSURE else replace(self, unread=self.unread + 1)

    def with_doubts(self, *doubts: Doubt) -> "Play":
        """The play with these doubts."""
        return replace(self, doubts=tuple(sorted({*self.doubts, *doubts})))

    def without_doubts(self, *doubts: Doubt) -> "Play":
        """The play after these doubts were settled."""
        return replace(self, doubts=tuple(one for one in self.doubts if one not in doubts))

    def doubted(self, name: str) -> "Play":
        """The play where that hand's decision is doubtful until it is entered again."""
        return self if name in self.contradicted else replace(self, contradicted=(*self.contradicted, name))

    def at_turn(self, seat: int) -> bool:
        """Whether it is that seat's turn."""
        return self.turn < len(self.hands) and self.hands[self.turn].seat == seat


# ---- card values


def count(cards: Iterable[str]) -> tuple[int, bool]:
    """The best total, and whether an ace counts 11 in it."""
    total, ace = 0, False
    for card in cards:
        total += PIPS[card]
        ace = ace or card[0] == "A"
    return (total + 10, True) if ace and total <= 11 else (total, False)


def is_blackjack(cards: tuple[str, ...]) -> bool:
    """Whether the cards are an ace with a ten or figure. Callers exclude split hands."""
    return len(cards) == 2 and PIPS[cards[0]] + PIPS[cards[1]] == 11 and "A" in (cards[0][0], cards[1][0])


def is_special(cards: tuple[str, ...]) -> bool:
    """Whether the cards are 6-7-8 of one suit, or three sevens."""
    if len(cards) != 3 or PIPS[cards[0]] + PIPS[cards[1]] + PIPS[cards[2]] != 21:
        return False
    ranks = sorted(card[0] for card in cards)
    return ranks == ["7", "7", "7"] or (ranks == ["6", "7", "8"] and len({suit(card) for card in cards}) == 1)


def perfect_pair(one: str, two: str) -> tuple[str, int]:
    """What the pair pays, "" for none, and its place among the three kinds."""
    if rank(one) != rank(two):
        return "", 0
    if suit(one) == suit(two):
        return "25", 3
    return ("12", 2) if colour(one) == colour(two) else ("5", 1)


def sevens(first: tuple[str, str], third: str) -> tuple[str, int]:
    """What the highest combination of sevens pays, and its place. `third` is "" where no third card counts."""
    if rank(first[0]) != "7" or rank(first[1]) != "7":
        return "", 0
    suits = {suit(card) for card in first}
    if third and rank(third) == "7":
        return ("5000", 4) if suits == {suit(third)} else ("500", 3)
    return ("150", 2) if len(suits) == 1 else ("50", 1)


def third_cards(hands: Hands) -> tuple[str, ...]:
    """The candidates for the first card dealt to a seat after its first split.

    A seat plays its hands in order. So it is hand 1's, or hand 3's where hand 1 was split once more.
    """
    first, further = hands[0].cards[1:2], hands[2:]
    if not further or (further[0].split_from > 1):
        return first
    if any(hand.split_from == 1 for hand in further):
        return further[0].cards[:1]
    return (*first, further[0].cards[0])


def stood(hand: Hand) -> Hand:
    """The hand after it stands."""
    total = count(hand.cards)[0]
    blackjack = is_blackjack(hand.cards) and not hand.split
    ended: End = "stand" if hand.doubled or total < 21 else "blackjack" if blackjack else "twenty_one"
    return replace(hand, ended=ended)


def said(hand: Hand, action: str) -> bool:
    """Whether this decision of the hand was reported before; a repetition changes nothing."""
    match action:
        case "stand":
            return hand.ended in ("stand", "blackjack", "twenty_one", "bust", "special")  # or without a decision
        case "double":
            return bool(hand.doubled)
        case "split":
            return hand.split
        case _:
            return hand.ended == action


def masked(cards: tuple[str, ...], down: tuple[int, ...]) -> tuple[str, ...]:
    """The cards as everybody sees them, of which some lie face down."""
    return tuple(UNKNOWN if place in down else card for place, card in enumerate(cards)) if down else cards


class Compared(Struct, frozen=True):
    """One hand against the bank: `main` and `double` are what they pay, "0" a tie, "" lost; `won` as streaks count.

    `why`: the rules that decide, in the words of `House.compare`; a text has an article for each.
    """

    hand: Hand
    result: str
    main: str
    double: str = ""
    won: int = 0
    why: tuple[str, ...] = ()


class House(Struct, frozen=True):
    """The choices of a text or a house. `down`: which of the players' first two cards lie face down.

    `split_by`: whether a pair is of one rank or of one value. `passed_pair_ends`: a seat that did not split a pair may
    split no other pair of that rank. `doubles_on`: the totals of two cards that may be doubled, whatever `doubling` is;
    an ace among them stays one. `stand_above`: a hand may stand above this total only. `protected`: a bank blackjack
    takes one bet of a seat only. `half_for_five`: five cards may take half the bet. `even_money_against`: values of the
    bank's first card; `asks_blackjack`: against them a player with a
    blackjack decides at the hand's turn, because there is no peek.
    """

    hole: bool = False
    peeks: bool = False
    down: tuple[int, ...] = ()
    bank_last: bool = False
    seats: int = 7
    soft_17: Literal["ace_six", "any_soft", "stand"] = "ace_six"
    always_draws: bool = False
    max_hands: int = 4
    resplit: bool = True
    resplit_aces: bool = True
    at_once: bool = False
    doubling: tuple[Literal["first_two", "split_pair", "eleven"], ...] = ("first_two", "split_pair")
    limit_double_11: bool = False
    surrender: Literal["before_any_card", "before_own_card", "none"] = "before_any_card"
    special_prize: Literal["closes", "on_top", "none"] = "closes"
    split_by: Literal["rank", "value"] = "rank"
    passed_pair_ends: bool = True
    doubles_on: tuple[int, ...] = ()
    stand_above: int = 0
    protected: bool = True
    half_for_five: bool = True
    even_money_against: tuple[int, ...] = (1, 10)
    asks_blackjack: bool = False

    # ---- the deal

    def receiver(self, play: Play) -> int:
        """The hand that receives the next card of the first deal, or BANK."""
        seats, dealt = len(play.hands), play.dealt
        if self.bank_last:
            return dealt % seats if dealt < 2 * seats else BANK
        place = dealt % (seats + 1)
        return BANK if place == seats else place

    def card_for(self, play: Play) -> int:
        """The hand at its turn that waits for a card; -1 where a decision is due."""
        turn, hands = play.turn, play.hands
        hand = hands[turn]
        if play.asked or len(hand.cards) == 1:
            return turn
        if hand.split and self.at_once:
            for place in range(turn + 1, len(hands)):
                if hands[place].seat == hand.seat and len(hands[place].cards) == 1:
                    return place
        return -1

    def placed(self, play: Play, card: str) -> tuple[Play, Literal["", "before_peek", "undecided"]]:
        """Give a valid card to the hand that waits for it; or why no hand does."""
        if play.dealt < play.first_deal:
            place, dealt = self.receiver(play), play.dealt + 1
            if place == BANK:
                play = replace(play, bank=(*play.bank, card), dealt=dealt)
            else:
                hand = play.hands[place]
                play = replace(play.with_hand(place, Hand(hand.seat, 1, (*hand.cards, card))), dealt=dealt)
            if dealt < play.first_deal:
                return play, ""
            hands = tuple(self.judged(play, one) if is_blackjack(one.cards) else one for one in play.hands)
            return self.advanced(replace(play, hands=hands)), ""
        if self.peek_due(play):
            return play, "before_peek"
        if play.turn < len(play.hands):
            place = self.card_for(play)
            if place < 0:
                return play, "undecided"
            hand = play.hands[place]
            hand = self.judged(play, replace(hand, cards=(*hand.cards, card)))
            return self.advanced(replace(play.with_hand(place, hand), asked=False)), ""
        if play.start == "burns" and len(play.bank) == 1:
            return replace(play, start="later"), ""
        return self.advanced(replace(play, bank=(*play.bank, card))), ""

    def advanced(self, play: Play) -> Play:
        """The play at the turn of the next hand without an end, or of the bank."""
        hands, turn = play.hands, play.turn
        if self.peek_due(play):
            return play
        while turn < len(hands) and hands[turn].ended:
            turn += 1
        play = replace(play, turn=turn)
        if turn < len(hands):
            # A hand that a correction left doubled has decided: its card is due.
            play = replace(play, asked=True) if hands[turn].doubled and len(hands[turn].cards) == 2 else play
        elif self.hole and not play.shown:
            play = replace(play, shown=True)
        return self.given(play) if play.held else play

    def given(self, play: Play) -> Play:
        """Give the cards drawn by mistake to the hands that wait for one, or to the bank if it draws."""
        if play.turn == len(play.hands):
            while play.held and self.needs(play):
                play = replace(play, bank=(*play.bank, play.held[0]), held=play.held[1:])
            return replace(play, discarded=(*play.discarded, *play.held), held=())
        if not play.held or self.card_for(play) < 0:
            return play
        return self.placed(replace(play, held=play.held[1:]), play.held[0])[0]

    def turned(self, play: Play) -> Play:
        """The bank's second card was turned when it was dealt: it is discarded, another takes its place."""
        discarded = (*play.discarded, *play.bank[1:])
        return replace(play, bank=play.bank[:1], dealt=play.first_deal - 1, discarded=discarded, shown=False)

    def undecided(self, play: Play) -> bool:
        """Whether the first deal is complete and nothing was decided since."""
        if play.dealt != play.first_deal or play.asked or play.shown or play.insured:
            return False
        return all(hand.ended in ("", "blackjack") and len(hand.cards) == 2 for hand in play.hands)

    def over(self, play: Play) -> bool:
        """Whether the play is complete."""
        if not play.hands or play.dealt < play.first_deal or play.turn < len(play.hands):
            return False
        return not self.peek_due(play) and not self.needs(play)

    # ---- the ends of a hand

    def hides(self, hand: Hand) -> bool:
        """Whether cards of the hand lie face down. A split lays them open."""
        return bool(self.down) and not hand.split

    def judged(self, play: Play, hand: Hand) -> Hand:
        """The hand with its end, where it has no choice left."""
        ended = self.end_of(play, hand)
        return replace(hand, ended=ended) if ended else hand

    def end_of(self, play: Play, hand: Hand) -> End:
        """The end of the hand, as far as its cards show it."""
        cards = hand.cards
        total, _ = count(cards)
        if total > 21:
            return "bust"
        # With cards face down a hand of 21 ends only once its player has decided.
        told = self.hides(hand) and play.peeked != "yes" and not play.shown
        if len(cards) == 2:
            if total == 21 and not hand.split and not told:
                asked = self.asks_blackjack and PIPS[play.bank[0]] in self.even_money_against
                return "" if asked and not self.second_seen(play) else "blackjack"
            if hand.split and cards[0][0] == "A":
                return "" if self.may_split(play, hand) else "twenty_one" if total == 21 else "stand"
        if len(cards) == 3 and self.special_prize == "closes" and is_special(cards):
            return "special"
        if hand.doubled and len(cards) > 2:
            return "stand"
        if total == 21 and not told and not self.may_take_half(play, hand):
            return "twenty_one"
        # Bets lost to a blackjack found by the peek are collected at once; no hand decides any more.
        return "stand" if play.peeked == "yes" and len(cards) > 1 else ""

    # ---- decisions

    def possible_actions(self, play: Play, hand: Hand) -> tuple[str, ...]:
        """The decisions that may be published: with cards face down, those of all cards that may lie there."""
        if not self.hides(hand):
            return self.actions(play, hand)
        found: set[str] = set()
        for ranks in combinations_with_replacement(RANKS, len(self.down)):
            cards = list(hand.cards)
            for place, one in zip(self.down, ranks, strict=True):
                cards[place] = one + "S"
            may_be = replace(hand, cards=tuple(cards))
            if self.possible(play, may_be) and count(cards)[0] <= 21:
                found.update(self.actions(play, may_be))
        return tuple(action for action in DECISIONS if action in found)

    def actions(self, play: Play, hand: Hand) -> tuple[str, ...]:
        """The decisions of the hand at its turn."""
        cards = hand.cards
        if is_blackjack(cards) and not hand.split:
            return ("stand", "even_money") if self.may_take_even_money(play) else ("stand",)
        aces = hand.split and cards[0][0] == "A"
        total = count(cards)[0]
        actions = ["stand"] if total > self.stand_above else []
        if total < 21 and not aces:
            actions.append("hit")
            if self.modality(hand):
                actions.append("double")
        if self.may_split(play, hand):
            actions.append("split")
        if self.may_surrender(play, hand):
            actions.append("surrender")
        if self.may_take_half(play, hand):
            actions.append("five_cards")
        return tuple(actions)

    def modality(self, hand: Hand) -> int:
        """The rule by which the hand may be doubled, as `Hand.doubled`; 0 for none."""
        cards = hand.cards
        if len(cards) != 2:
            return 0
        if self.doubles_on:
            total = PIPS[cards[0]] + PIPS[cards[1]]
            return BY_TOTAL if total in self.doubles_on and count(cards)[0] < 21 else 0
        if hand.split:
            return 2 if "split_pair" in self.doubling and hand.cards[0][0] != "A" else 0
        if "first_two" in self.doubling:
            return 1
        return 3 if "eleven" in self.doubling and count(hand.cards)[0] == 11 else 0

    def may_split(self, play: Play, hand: Hand) -> bool:
        """Whether the hand may be split: a pair, not too many hands, and no earlier pair of its rank that was kept."""
        cards = hand.cards
        if len(cards) != 2 or not self.pair(*cards):
            return False
        if not hand.split:
            return True
        if not (self.resplit_aces if cards[0][0] == "A" else self.resplit):
            return False
        others = [one for one in play.of(hand.seat) if one.number != hand.number]
        if len(others) + 1 >= self.max_hands:
            return False
        return not self.passed_pair_ends or not any(
            len(one.cards) > 1 and one.cards[0][0] == one.cards[1][0] and (one.ended or len(one.cards) > 2)
            for one in others
        )

    def pair(self, one: str, two: str) -> bool:
        """Whether two cards are a pair."""
        return one[0] == two[0] if self.split_by == "rank" else PIPS[one] == PIPS[two]

    def may_surrender(self, play: Play, hand: Hand) -> bool:
        """Whether the hand may be given up: not against an ace, and before any further card of the round (or of the
        hand).
        """
        return not is_blackjack(hand.cards) and self._surrender_open(play, hand)  # even money only

    def offers_surrender(self, play: Play, hand: Hand) -> bool:
        """Whether, by the visible cards, a hand may be given up out of turn."""
        may = self._surrender_open if self.hides(hand) else self.may_surrender
        return not hand.ended and may(play, hand)

    def _surrender_open(self, play: Play, hand: Hand) -> bool:
        """Whether a surrender is open, by the cards that everybody sees."""
        if self.surrender == "none" or play.bank[0][0] == "A" or hand.split or len(hand.cards) != 2:
            return False
        if self.surrender == "before_own_card":
            return True
        return sum(len(one.cards) for one in play.hands) + 1 + self.hole == play.first_deal

    def may_take_half(self, play: Play, hand: Hand) -> bool:
        """Whether the hand may take half its bet: five cards, not against an ace."""
        return self.half_for_five and len(hand.cards) == 5 and play.bank[0][0] != "A" and not hand.doubled

    def before_second(self, play: Play) -> bool:
        """Whether the bank's second card is still unknown to everybody, and may be insured against."""
        known = play.shown or play.peeked or play.strays or len(play.bank) > 1 + self.hole
        return play.dealt == play.first_deal and not known

    def second_seen(self, play: Play) -> bool:
        """Whether the bank's second card was seen, so that all decisions are over."""
        return (self.hole and play.shown) or len(play.bank) > 1 + self.hole

    def may_take_even_money(self, play: Play) -> bool:
        """Whether even money is open: against these cards, before the bank's second card is known."""
        return self.before_second(play) and PIPS[play.bank[0]] in self.even_money_against

    def may_insure(self, play: Play, seat: int) -> bool:
        """Whether the seat may insure: against an ace, before it decides and before the bank's second card is known."""
        hands = play.of(seat)
        if len(hands) != 1 or len(hands[0].cards) != 2 or hands[0].doubled:
            return False
        # A blackjack that lies open has ended by itself, one that lies face down by its decision.
        ends = ("",) if self.hides(hands[0]) else ("", "blackjack")
        if hands[0].ended not in ends or (play.asked and play.at_turn(seat)):
            return False
        return self.before_second(play) and play.bank[0][0] == "A"

    def decided(self, play: Play, place: int, action: str, *, followed: bool = False) -> Play:
        """The play after a decision that is allowed. `followed`: others may lay chips before the card lies there."""
        hand = play.hands[place]
        if hand.name in play.contradicted:
            play = replace(play, contradicted=tuple(name for name in play.contradicted if name != hand.name))
        # A surrender out of turn does not decide who gets the next card.
        if "next_card" in play.doubts and place == play.turn:
            play = play.without_doubts("next_card")
        match action:
            case "hit":
                play = replace(play, asked=True)
                return self.given(play) if play.held else play
            case "double":
                play = replace(play.with_hand(place, replace(hand, doubled=self.modality(hand))), asked=True)
                return self.given(play) if play.held and not followed else play
            case "split":
                play = self._split(play, place)
                return self.given(play) if play.held and not followed else play
            case "surrender":
                hand = replace(hand, ended="surrender")
            case "five_cards":
                hand = replace(hand, ended="five_cards")
            case _:
                hand = stood(hand)
        return self.advanced(play.with_hand(place, hand))

    def _split(self, play: Play, place: int) -> Play:
        """A new hand after the seat's last."""
        hand = play.hands[place]
        last = max(n for n, one in enumerate(play.hands) if one.seat == hand.seat)
        new = Hand(hand.seat, play.hands[last].number + 1, hand.cards[1:], split=True, split_from=hand.number)
        hands = list(play.with_hand(place, replace(hand, cards=hand.cards[:1], split=True)).hands)
        hands.insert(last + 1, new)
        return replace(play, hands=tuple(hands))

    def untaken(self, play: Play, seat: int, number: int, action: str) -> Play:
        """The play that records a refused decision which affects money and which the cards alone do not show."""
        if action not in ("double", "surrender", "five_cards") or not play.closed:
            return play
        if seat > self.seats or number > self.max_hands:
            return play
        told = any(hand.number == number and said(hand, action) for hand in play.of(seat))
        return play if told else play.doubted(f"{seat}.{number}")

    # ---- the bank

    def peek_due(self, play: Play) -> bool:
        """Whether the bank must peek for blackjack, under an ace or a ten."""
        if not self.peeks or play.peeked or play.shown or play.dealt < play.first_deal:
            return False
        return bool(play.bank) and PIPS[play.bank[0]] in (1, 10)

    def peeked(self, play: Play, *, blackjack: bool) -> Play:
        """The play after the peek. A blackjack ends all hands."""
        play = replace(play, peeked="yes" if blackjack else "no")
        if blackjack:
            hands = tuple(hand if hand.ended else self.judged(play, hand) for hand in play.hands)
            play = replace(play, hands=hands, asked=False)
        return self.advanced(play)

    def draws(self, bank: tuple[str, ...]) -> bool:
        """Whether the bank must take a card."""
        total, soft = count(bank)
        if total != 17 or not soft:
            return total <= 16
        match self.soft_17:
            case "ace_six":
                return len(bank) == 2
            case "any_soft":
                return True
            case _:
                return False

    def enough(self, bank: tuple[str, ...]) -> int:
        """The number of cards after which the bank had to stand."""
        return next((taken for taken in range(2, len(bank)) if not self.draws(bank[:taken])), len(bank))

    def bank_next(self, play: Play) -> bool:
        """Whether the bank's second card is due."""
        return play.turn == len(play.hands) and len(play.bank) == 1 and play.dealt == play.first_deal

    def needs(self, play: Play) -> bool:
        """Whether the bank takes one more card."""
        bank = play.bank
        compared = self.always_draws or any(hand.ended in ("stand", "twenty_one") for hand in play.hands)
        if len(bank) == 1:
            if compared:
                return True
            # Only a blackjack of the bank can still matter: to a blackjack, or to an insurance.
            asks = bool(play.insured) or any(hand.ended == "blackjack" for hand in play.hands)
            return asks and PIPS[bank[0]] in (1, 10)
        return compared and self.draws(bank)

    # ---- public views

    def due(self, play: Play, *, burn: bool) -> tuple[str, Hand | None]:
        """The next expected thing (burn, card, peek or decision) and its hand; None is the bank."""
        if burn or (play.start == "burns" and self.bank_next(play)):
            return "burn", None
        if play.dealt < play.first_deal:
            place = self.receiver(play)
            return "card", None if place == BANK else play.hands[place]
        if self.peek_due(play):
            return "peek", None
        if play.turn == len(play.hands):
            return "card", None
        place = self.card_for(play)
        return ("card", play.hands[place]) if place >= 0 else ("decision", play.hands[play.turn])

    def laid(self, play: Play, *, over: bool = False) -> dict[str, Any]:
        """The hands as everybody may see them; once a round is over by its result, all of them."""
        hands = {DEALER: play.bank if over or play.shown or not self.hole else masked(play.bank, (1,))}
        for hand in play.hands:
            seen = over or hand.split or hand.ended in LAID_OPEN
            hands[hand.name] = hand.cards if seen else masked(hand.cards, self.down)
        totals = {name: count(cards)[0] for name, cards in hands.items() if cards and UNKNOWN not in cards}
        if self.doubles_on:
            totals |= {hand.name: hand.total for hand in play.hands if hand.doubled}
        return {"hands": hands, "totals": totals}

    # ---- cards as they lie

    def possible(self, play: Play, hand: Hand) -> bool:
        """Whether the rules of hits, splits and doubles give such a hand."""
        cards = hand.cards
        if not cards or any(count(cards[:taken])[0] >= 21 for taken in range(2, len(cards))):
            return False
        if hand.split and any(one.cards[:1] and not self.pair(one.cards[0], cards[0]) for one in play.of(hand.seat)):
            return False
        if hand.doubled and len(cards) == 2 and count(cards)[0] == 21:
            return False
        if hand.doubled == BY_TOTAL and not self.modality(replace(hand, cards=cards[:2])):
            return False
        return len(cards) <= (2 if hand.split and cards[0][0] == "A" else 3 if hand.doubled else 22)

    # ---- payouts

    def compare(self, play: Play) -> list[Compared]:
        """Every hand against the bank."""
        bank = play.bank
        blackjack = is_blackjack(bank)
        total = 21 if blackjack else count(bank)[0]
        spared = _spared(play.hands) if blackjack and self.protected else frozenset()
        compared = []
        for place, hand in enumerate(play.hands):
            match hand.ended:
                case "bust":
                    one = Compared(hand, "lose", "", "", -1, ("bust",))
                case "surrender":
                    one = Compared(hand, "surrender", "-1/2", "", -1, ("surrender",))
                case "even_money":
                    one = Compared(hand, "win", "1", "", 1, ("even_money",))
                case "five_cards":
                    one = Compared(hand, "win", "1/2", "", 1, ("five_cards",))
                case "special":
                    one = Compared(hand, "win", "3", "3", 1, ("special",))
                case "blackjack" if blackjack:
                    one = Compared(hand, "push", "0", "", 0, ("both_blackjack",))
                case "blackjack":
                    beaten = "blackjack_beats_21" if total == 21 and len(bank) > 2 else "blackjack"
                    one = Compared(hand, "win", "3/2", "", 1, (beaten,))
                case _ if blackjack:
                    one = self._against_blackjack(hand, spared=place in spared)
                case _:
                    one = _by_total(hand, total)
            if self.special_prize == "on_top" and is_special(hand.cards):
                main, double = (str(3 + (int(pays) if pays else -1)) for pays in (one.main, one.double))
                one = replace(one, main=main, double=double, why=(*one.why, "special"))
            compared.append(one if hand.doubled else replace(one, double=""))
        return compared

    def _against_blackjack(self, hand: Hand, *, spared: bool) -> Compared:
        """Compare with a bank blackjack. A double by `first_two` or `split_pair` comes back, one on eleven by option.

        `spared`: another hand of the seat has lost its first bet already.
        """
        why: tuple[str, ...] = ("bank_blackjack" if count(hand.cards)[0] == 21 else "total",)
        double = ""
        if hand.doubled in (1, 2):
            why, double = (*why, "double_returned"), "0"
        elif hand.doubled == 3 and self.limit_double_11:
            why, double = (*why, "double_11_returned"), "0"
        if spared:
            return Compared(hand, "returned", "0", double, 0, (*why, "one_bet_lost"))
        return Compared(hand, "lose", "", double, -1, why)


def _by_total(hand: Hand, bank: int) -> Compared:
    mine = hand.total
    if bank > 21 or mine > bank:
        why = "twenty_one" if mine == 21 and len(hand.cards) > 2 else "total"
        return Compared(hand, "win", "1", "1", 1, (why,))
    if mine == bank:
        return Compared(hand, "push", "0", "0", 0, ("tie",))
    return Compared(hand, "lose", "", "", -1, ("total",))


def _spared(hands: Hands) -> frozenset[int]:
    """The open hands of a split seat that do not lose against a bank blackjack."""
    spared = set[int]()
    paid_for = {hand.seat for hand in hands if hand.split and hand.ended == "bust"}
    for place, hand in enumerate(hands):
        if hand.split and hand.ended in ("stand", "twenty_one"):
            if hand.seat in paid_for:
                spared.add(place)
            paid_for.add(hand.seat)
    return frozenset(spared)
