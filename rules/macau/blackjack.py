"""Macau blackjack: Despacho 57/2009 (edition 2009) and 56/2004 with 42/2007 (edition 2004).

The flow: the bets are opened and laid; the bell ends them; the cards of 4(2) are burnt; two cards go to every seat
with a bet, the bank has one (shoe, shuffler) or two (metal box, hole card), one at a time from the left (5); in the
hole-card procedure the bank peeks under an ace or a ten (5(2)(3)(3)); the seats decide one after the other (6); the
bank takes its cards (6(1)); every hand is compared (9 to 12) and the additional bets are paid (13 to 16).

The events of the table:

- `bets.opened`, then `wager.placed` where a device detects chips, else `seat.opened`, `seat.closed`; `bets.closed`: the
  bell.
- `card.drawn` in the order of the deal, burnt cards too: who receives it follows from the procedure. `face` is how it
  lay in the shoe, "down" or empty; "up" is a card that is void and replaced (5(1)(1)). Cards that lie face down are
  reported like all others; no view shows them before their time.
- `hole_card.peeked` whenever the bank must peek.
- `seat.acted` for each decision; `amount` is 0 or, where the bet is known, exactly what the decision adds; insurance is
  entered with its whole amount, or as wagers on `insurance`, which add up. Hands without a choice end by themselves,
  except while their cards lie face down: then a stand is reported for blackjack and 21, too.
- Bets on another seat n are `any_pair:n`, `sevens:n`, `over_13:n`, `under_13:n`; `main:2`, `main:3` are bets of further
  players on one seat.
- Hands are named "dealer", "3.1", "3.2", or "seat_3", "seat_3_2" as a console does; a new hand comes after the seat's
  last. `deal.corrected` names the hands that changed, as they lie now; the hole card may be left out.
- `due` in the view is the next expected thing: a card, a decision with the allowed actions, or the peek. For a hand
  with cards face down it names the actions of all cards that may lie there; `refused` is why a decision was not taken.

Readings:

- 3, 5(1): with a known main bet those seats play that have one; without any, the seats opened.
- 3, 5(1): a round whose seats are not known waits for `deal.corrected` that names all of them.
- 5(1): the bank's first card ends the first pass, or by option follows the seats' second cards.
- 5(1)(1): a card that came face up is void, the next one takes its place; the first one of the game counts by option.
- 5(1)(2): a card without a decision, an unread card, or a loss after the bell suspends the round; it goes on when the
  deal is corrected, and is void when declared so, when bets are opened or, once cards are out, a new shoe starts.
- 5(1)(2): the bets of a void round come back; streak bets stand as they stood (no article covers the bets).
- 5(1)(2): after a loss the earlier bets are unknown; a round that is then corrected is resolved, or void, without them.
- 5(1)(2): a resolved round can be corrected until the bets are opened, later only by its id, while the next is open;
  paid in doubt, its first result stands.
- 5(1)(2): a hole card that is not named stays where it lies; if it is unknown, the round waits.
- 5(1)(2): a corrected first card of the bank undoes the decisions that it does not allow: insurance (12(1)), even money
  (10(3)), surrender (18(1)), half for five cards (19(1)); a peek that wrongly reported a blackjack undoes the ends of
  all hands.
- 5(1)(2): a hit from before a correction is entered again; so is a double, a surrender or half for five cards that was
  reported and not taken. A doubled hand waits for its third card.
- 5(2)(3)(8): the maximum limits the bets laid before the bell, not insurance, splits and doubles (12, 16, 17).
- 4(2): a burn that was not reported completely suspends the round at the bell, until an empty correction confirms it;
  so does one that may be among the cards reported or lost while the round waited or between two rounds.
- 4(2): the card that a round without cards did not burn is not due twice in the next.
- 2(2)(1): the white card that comes while a round is dealt makes it the last; between two, the one after it.
- 2(2)(3): the metal box serves one round. A table that was never played on is past its burn.
- 6(1): the bank draws where a hand or an insurance depends on it (option: always).
- 6(1): its needless card is void; by option, unseen before the payment, it counts and the result is corrected.
- 6(3): a decision out of turn is noted and changes nothing; the card after a hit, double or split that was not taken
  belongs to no hand, unless a decision was taken since. Two decisions before one card suspend the round, unless the
  cards show which it was.
- 6(6): only ace and six are the soft 17; afterwards the ace counts by its best value again.
- 10(3), 12: even money and insurance end with the peek or the bank's second card; both are taken while a round waits.
- 12(1): insurance is measured by the whole bet of a seat, by any of its players.
- 13: a pair is two cards of one rank; additional bets on a seat that does not play, or from one, go back.
- 13(1): any pair is paid again for every further pair.
- 13(2)(2): three sevens are paid where two were split, a plain third seven by option; where a person entered the hands,
  only if the cards prove it; where a bet depends on it, the deal is entered as it lay before that split.
- 13(3): over and under 13 count the ace as one, else over would favour the player; 13 itself loses.
- 13(5): one button per seat; it advances on a win, stays on a tie (11(2)), falls with a loss, split hands by 16(7).
- 13(5)(2)(v): from the bell of their first round these bets can no longer be changed; (vi): a seat that does not play
  loses them (option: they stand). `stands` names the kinds that a seat still has open.
- 15: the special prize is for exactly three cards and closes the hand (option: on top of its result).
- 16(3), 16(5): aces are split again, other pairs too: both options.
- 16(6), 17(3): against a bank blackjack a seat that split loses one bet only, and hands that had bust (7(2)) count for
  it; a double made by 17(1)(1) or (2) comes back, one by (3) is lost unless `limit_double_11` (10(7)).
- 17(1)(2): split hands are doubled by this item only.
- 18(2): "a further card" is one drawn after the first deal: until then any seat may surrender, even out of turn. 21(1)
  leaves no choice; by option each hand may surrender before its own third card.
- 19: half the bet is for exactly five cards.
- 20(1): the bets of further players follow the decisions of the seat; where no bet is reported all possible ones are
  named.
- 6(3): a late event with its age is inserted at its time; an unknown decision without a known place that comes after
  the end puts the result in doubt.
"""

from itertools import groupby, product
from typing import ClassVar, Final

from msgspec.structs import replace

from protocols.contract.events import WagerPlaced, WagerWithdrawn
from rules.engine.facts import Note
from rules.engine.rounds import Round, terms
from rules.engine.ruleset import Bet, Win
from rules.games.blackjack import Compared, House, Play, sevens, third_cards
from rules.games.blackjack_decisions import UNLIMITED, Position, Text
from rules.games.blackjack_round import VOID_WORDS, Beside, BlackjackRounds, bad_bet
from rules.games.blackjack_stakes import Streak, is_main
from rules.games.cards import DECK
from rules.macau.blackjack_bets import (
    ACROSS,
    ARTICLES,
    FAMILIES,
    KINDS,
    PAYTABLE,
    PERMITTED,
    STREAKS,
    Won,
    on_pair,
    on_two,
    streak_ends,
)
from rules.macau.blackjack_options import BlackjackOptions
from rules.needs import Needs, blackjack

_AMENDED: Final = ("6", "13", "16", "17")


class Blackjack(BlackjackRounds):
    """The ruleset."""

    id: ClassVar[str] = "macau.blackjack"
    title: ClassVar[str] = "Blackjack, Macau"
    law: ClassVar[str] = "Despacho 57/2009; edition 2004: Despacho 56/2004 with 42/2007"
    Options: ClassVar[type[BlackjackOptions]] = BlackjackOptions
    needs: ClassVar[Needs] = blackjack("art. 5(1)", "arts. 5(1), 5(2)", "art. 6(3)", "art. 1(4)")
    article_void: ClassVar[str] = "5(1)(2)"
    article_bets: ClassVar[str] = "5(1)"
    article_bell: ClassVar[str] = "5(1)"

    def __init__(self, options: BlackjackOptions) -> None:
        """Compute, once, the parts that depend only on the options and on two cards."""
        self.options = options
        self._2004 = options.edition == "2004"
        super().__init__(_text(options), _house(options))
        self.terms = terms(self.id, options.edition, options, VOID_WORDS)
        families = options.bets_offered or tuple(bet for bet in FAMILIES if bet not in PERMITTED)
        self._families = frozenset(families)
        bets = [bet for bet in PAYTABLE if bet.id in families]
        across = [
            replace(bet, id=f"{bet.id}:n", text=f"the same for seat n: {bet.text}") for bet in bets if bet.id in ACROSS
        ]
        further = Bet("main:n", "1; blackjack 3/2", "art. 20(1)", "the bet of the n-th player on a seat, 2 or more")
        self._bets = (*bets, *across, *((further,) if options.bettors > 1 else ()))
        self.offered = frozenset(
            (
                *(bet for bet in families if bet not in ("double", "insurance")),
                *(f"{bet}:{seat}" for bet in ACROSS if bet in families for seat in range(1, options.seats + 1)),
                *(f"main:{place}" for place in range(2, options.bettors + 1)),
            )
        )
        self._cites: dict[str, str] = {}
        self._on_two: dict[tuple[str, str], tuple[Won, ...]] = {
            two: tuple(won for won in on_two(*two, options.ace_over_under) if won[0] in self._families)
            for two in product(DECK, DECK)
        }

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of the text."""
        return self._bets

    def cite(self, article: str) -> str:
        """The article in the edition's numbering; cached, because there are few."""
        found = self._cites.get(article)
        if found is None:
            found = self._cites[article] = self._cited(article)
        return found

    def _cited(self, article: str) -> str:
        if not self._2004:
            return f"Despacho 57/2009 art. {article}"
        head, _, rest = article.partition("(")
        if head == "11":
            return f"Despacho 56/2004 art. 11({rest.partition('(')[2]}"
        return f"Despacho 56/2004 art. {article}{' (42/2007)' if head in _AMENDED else ''}"

    # ---- arts. 13, 14, 16(7): the additional bets

    def bet_refused(self, p: Position, round_: Round, one: WagerPlaced | WagerWithdrawn) -> Note | None:
        """Arts. 3(1), 13: a seat of the table, one kind of additional bets, no change of streak bets."""
        if refused := super().bet_refused(p, round_, one):
            return refused
        if one.bet in STREAKS and any(streak.seat == one.seat for streak in p.streaks):
            return bad_bet("streak_bets_stand", one, "13(5)(2)(v)")
        if isinstance(one, WagerWithdrawn):
            return None
        kind = KINDS.get(one.bet.partition(":")[0])
        if kind and self.options.additional_bets == "one":
            kinds = {KINDS.get(held.bet.partition(":")[0]) for held in round_.wagers if held.seat == one.seat}
            if kinds - {None, kind}:
                return bad_bet("second_additional_bet", one, "13")
        most = self.options.table_maximum
        if most and sum(held.amount for held in round_.wagers) + one.amount > most:
            return bad_bet("table_maximum", one, "5(2)(3)(8)")
        return None

    def on_seat(self, bet: str) -> int:
        """Arts. 13(1) to (3): an additional bet on another seat."""
        kind, _, seat = bet.partition(":")
        return int(seat) if kind in ACROSS and seat else 0

    def kept_open(self, p: Position, round_: Round) -> tuple[Position, Round]:
        """Art. 13(5): streak bets stand from now on."""
        if new := sorted((one for one in round_.wagers if one.bet in STREAKS), key=lambda one: one.seat):
            streaks = [Streak(seat, tuple(bets)) for seat, bets in groupby(new, key=lambda one: one.seat)]
            p = replace(p, standing=(*p.standing, *streaks))
            round_ = replace(round_, wagers=tuple(one for one in round_.wagers if one.bet not in STREAKS))
        return p, round_

    def streaks_after(self, streaks: tuple[Streak, ...], play: Play) -> tuple[Streak, ...]:
        """Art. 13(5): the streaks after the round."""
        return streak_ends(streaks, self.house.compare(play), absent=self.options.streak_absent)[0]

    def rests_on_unknown(self, play: Play, round_: Round) -> bool:
        """Art. 13(2)(2): whether a bet depends on a third card that the hands do not show."""
        if "sevens" not in self._families:
            return False
        bets = round_.wagers
        told = any(is_main(one.bet) for one in bets)
        for seat, group in groupby(play.hands, key=lambda hand: hand.seat):
            mine = tuple(group)
            if len(mine) < 3:
                continue
            first = (mine[0].cards[0], mine[1].cards[0])
            laid = any(one.bet == f"sevens:{seat}" or (one.seat, one.bet) == (seat, "sevens") for one in bets)
            if (laid or not told) and len({sevens(first, third) for third in third_cards(mine)}) > 1:
                return True
        return False

    def beside(self, p: Position, play: Play, round_: Round, compared: list[Compared]) -> Beside:
        """Arts. 13, 14: the bets on the first cards, and the winning streaks."""
        wins, law = self._on_first_cards(play)
        if not p.standing:
            return Beside(tuple(wins), tuple(law))
        streaks, decided, won, articles = streak_ends(p.standing, compared, absent=self.options.streak_absent)
        law |= dict.fromkeys(articles)
        outcome = {"streaks": {str(one.seat): one.wins + 1 for one in streaks}}
        stands = tuple(sorted({bet.bet for one in streaks for bet in one.bets}))
        return Beside((*wins, *won), tuple(law), outcome, decided, stands)

    def _on_first_cards(self, play: Play) -> tuple[list[Win], dict[str, None]]:
        """Arts. 13, 14: the wins of the first cards of every seat, and the articles."""
        wins: list[Win] = []
        law: dict[str, None] = {}
        for place, hand in enumerate(play.hands):
            if hand.number != 1:
                continue
            two = play.hands[place + 1].cards[0] if hand.split else hand.cards[1]
            found = self._on_two[hand.cards[0], two]
            if hand.cards[0][0] == two[0]:
                pairs = on_pair(play.of(hand.seat), two, any_third=self.options.three_sevens == "any")
                found += tuple(won for won in pairs if won[0] in self._families)
            for bet, pays, articles in found:
                wins.append(Win(bet, pays, seat=hand.seat))
                if bet in ACROSS:
                    wins.append(Win(f"{bet}:{hand.seat}", pays))
                law |= dict.fromkeys(articles)
        return wins, law


# ---- meaning of the options


def _house(options: BlackjackOptions) -> House:
    down = {"1": "both", "2": "none", "3": options.players_down}[options.procedure]
    return House(
        # The bank's second card lies face down from the first deal on.
        hole=options.procedure == "3" or options.device == "metal_box",
        peeks=options.procedure == "3",
        down={"none": (), "first": (0,), "second": (1,), "both": (0, 1)}[down],
        bank_last=options.bank_first_card == "last",
        seats=options.seats,
        soft_17=options.soft_17,
        always_draws=options.bank_draws == "always",
        max_hands=options.max_hands,
        resplit=options.resplit,
        resplit_aces=options.resplit_aces,
        at_once=options.split_cards == "at_once",
        doubling=options.doubling,
        limit_double_11=options.limit_double_11,
        surrender=options.surrender,
        special_prize=options.special_prize,
    )


def _text(options: BlackjackOptions) -> Text:
    article = "5(2)(1)(2)" if options.device == "metal_box" else "5(2)(1)(1)"
    dealing = {"1": article, "2": "5(2)(2)", "3": "5(2)(3)"}[options.procedure]
    return Text(
        articles=ARTICLES,
        law=("5(1)", dealing, "6", "8"),
        decks=options.decks,
        burn=options.decks if options.burn == "decks" else 1,
        device=options.device,
        burn_each=options.burn_each_round,
        rounds=1 if options.device == "metal_box" else UNLIMITED,
        face_up="void" if options.first_card_face_up == "void" else "first_valid",
        unseen_extra_counts=options.extra_card == "valid_if_unseen",
        insurance=options.insurance,
        bettors=options.bettors,
        decides=options.decides,
    )
