"""Chemin de fer, Angola: Decreto Executivo 261/22, article 12. Players play each other; one of them holds the bank.

The flow of a coup: the banker names his bank (12(39)), the punters cover it, one by banco or several together (12(46)),
the dealer closes the bets (12(40)), and two cards each are dealt (12(63)). The punter with the cards speaks first
(12(65)), then the banker turns his and draws by the table (12(68)); at last the punter shows. What is reported:

- bets of punters: wagers on "cover" and "half". All other decisions are `seat.acted`, by their seat: "bank",
  "association", "banco", "banco_with_table", "banco_suivi"; in the coup "looks", "show", "draw", "stand", "give",
  "refuse"; before it "pass", "take", "auction", "bid", "bid_half", "garage", "halve", "reduce", "outside", "absent",
  "moved".
- `hand.passed`: the end of an auction; where no bank is known also who has it.
- decisions of the dealer: "by_table" 12(103), "cards_to" 12(102) and 12(106)(e), "discarded" 12(76), and the faults of
  12(76), 12(105) and 12(107) by their letters ("fault_105e").

Cards that lie face down are in no view until they are shown. The allowed decisions and the next step do not depend on
them, so a false draw is put right when both hands lie open.

Readings besides those of `rules/games/chemin_coup.py`, `chemin_bank.py` and `chemin_table.py`:

- 12(13): the first card counts as one of the burnt ones, a court card burns itself alone (`burn`).
- 12(14): the coup under way when the warning card comes is the last; between two coups, or before the first card of
  one, one more is dealt.
- 12(48): the percentage is an option, per mille of what the bank wins; the banker may pay it beside the bank.
- 12(77): bets of a tied coup go back; for the next one they are reported anew.
- 12(105)(d)-(j): the coup waits until a person enters the hands as they lie; the program counts them by the paragraph
  of the fault. 12(105)(i): only where the cards cannot be recovered, for (l) lets them keep their value.
- 12(105)(k): once a coup was paid, no hands that are reported later change it.
- 12(107)(d): where the shoe is empty before six cards of a coup are out, it is void.
- No paragraph covers a loss. Where bets or the bank may be missing the coup can only be declared void: banker, partner
  and punters get back what they laid. The bank is reported again before the next one. Where only cards are missing a
  person enters the hands.
- A correction of an ended coup takes back what was decided of the bank since: it must be reported again.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace

from protocols.contract.events import (
    MOST,
    BetsClosed,
    CardDamaged,
    CardDrawn,
    CardsLoaded,
    CardUnreadable,
    CutCardDrawn,
    Event,
    HandPassed,
    RoundPaid,
    SeatActed,
    SeatClosed,
    SeatOpened,
    ShoeEmptied,
    ShoeStarted,
    WagerPlaced,
    WagerWithdrawn,
)
from protocols.contract.facts import BankOffer, CheminFacts, Due, RoundFacts
from protocols.contract.reasons import Reason, say
from rules.engine.cloth import not_taken, refuse, wager
from rules.engine.duties import Duties, Replacement
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Hands, Note, Table
from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.refold import Game
from rules.engine.rounds import Round, irregular, resolved, terms
from rules.engine.ruleset import Bet, Result, Settlement, View, Wager, Win, option
from rules.games.cards import FIGURES, PIPS, POINTS, UNKNOWN, points
from rules.games.chemin_bank import LEAST_SEATED, after_coup, exists, first_bank, leaves, rank, seated, seated_at
from rules.games.chemin_coup import BY_HANDS, NATURAL, SIDES, allowed, count, faulty, next_of
from rules.games.chemin_decisions import DECISIONS, Least, decide, handed, note, noted, without
from rules.games.chemin_table import (
    ALONE,
    COVER,
    HALF,
    UNLIMITED,
    Claim,
    End,
    Position,
    between,
    by_seat,
    claimed,
    covered,
    once,
    outranked,
    plays,
    punter,
    room,
)
from rules.needs import Needs, rotating_bank

TEXT: Final = "Decreto Executivo 261/22"
DECKS: Final = 6
LAST_COUP_CARDS: Final = 6
MOST_CARDS: Final = 8
FROM_FIRST: Final = -1
UNCOUNTED: Final = -2
VOID_WORDS: Final = {"pt": "Golpe nulo", "zh-Hant": "此局無效", "en": "Void"}
CALLS: Final[Mapping[str, tuple[str, str, str]]] = {
    "tie": ("Igualdade a {0}", "和，{0}點", "Tie, {0} all"),
    "player": ("{0} no ponto, {1} na banca: ganha o ponto", "閒贏，{0}點對{1}點", "Punter wins, {0} to {1}"),
    "banker": ("{0} no ponto, {1} na banca: ganha a banca", "莊贏，{1}點對{0}點", "Banker wins, {1} to {0}"),
    "player_only": ("Ganha o ponto", "閒贏", "Punter wins"),
    "banker_only": ("Ganha a banca", "莊贏", "Banker wins"),
}
VOID: Final = say("do_void_coup")
CORRECT: Final = say("do_correct_coup")
NULL: Final = {
    "fault_76": (say("fault_76"), "12(76)"),
    "fault_105c": (say("fault_105c"), "12(105)(c)"),
    "fault_107c": (say("fault_107c"), "12(107)(c)"),
}
BURNT: Final = {"fault_105m": "12(105)(m)", "fault_107a": "12(107)(a)"}
DUTIES: Final[Duties] = (
    Replacement("deck_replacement", f"{TEXT} art. 12(5)", (CardDamaged,), (ShoeStarted, CardsLoaded)),
)
_CLAIM: Final[Mapping[str, tuple[Claim, str]]] = {
    "banco_suivi": ("suivi", "12(52)"),
    "banco": ("banco", "12(49)"),
    "banco_with_table": ("table", "12(57)"),
}


class CheminOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
    """What the text leaves to the house, and the readings that are possible."""

    minimum_bank: Annotated[int, Meta(ge=1), option("arts. 12(35), 12(37)", "minor units, the least bank")] = 1000
    minimum_bet: Annotated[
        int, Meta(ge=1), option("arts. 12(36), 12(37)", "minor units; bets are this or a multiple")
    ] = 100
    auction_base: Annotated[
        int, Meta(ge=0), option("art. 12(83)", "minor units that an auction begins with; 0: the least bank")
    ] = 0
    auction_step: Annotated[int, Meta(ge=1), option("art. 12(83)", "minor units between two bids")] = 100
    percentage: Annotated[
        int, Meta(ge=0, le=1000), option("art. 12(48)", "per mille that the house keeps of what the bank wins")
    ] = 0
    burn: Annotated[
        Literal["inclusive", "additional"],
        option("art. 12(13)", "as many cards as the first one counts, with it or beside it"),
    ] = "inclusive"
    smallest_chip: Annotated[int, Meta(ge=1), option("-", "minor units that the percentage can be taken in")] = 1
    rounding: Annotated[Rounding, option("-", "not used: the percentage is rounded down")] = "down"

    def __post_init__(self) -> None:
        """Raise ValueError for a combination the text excludes, naming the article."""
        if 0 < self.auction_base < self.minimum_bank:
            raise ValueError("auction_base: art. 12(81): bids begin at the least bank, minimum_bank")


class CheminState(Table[Position], frozen=True):
    """The state of a table."""


class CheminDeFer(Game[Position]):
    """The ruleset."""

    id: ClassVar[str] = "angola.chemin-de-fer"
    title: ClassVar[str] = "Chemin de fer, Angola"
    law: ClassVar[str] = "Decreto Executivo 261/22, article 12"
    Options: ClassVar[type[CheminOptions]] = CheminOptions
    State: ClassVar[type[CheminState]] = CheminState
    Facts: ClassVar[type[RoundFacts]] = CheminFacts
    needs: ClassVar[Needs] = rotating_bank(
        "art. 12(13)", "art. 12(39)", "art. 12(38)", "art. 12(40)", "art. 12(63)", "arts. 12(65), 12(68)"
    )
    own: ClassVar[frozenset[type[Event]]] = frozenset(
        (
            *(CardDrawn, CardUnreadable, CutCardDrawn, ShoeStarted, ShoeEmptied),
            *(SeatActed, SeatOpened, SeatClosed, HandPassed),
        )
    )
    numbers_shoes: ClassVar[bool] = True
    article_void: ClassVar[str] = "12(107)(c)"
    article_bets: ClassVar[str] = "12(41)"
    article_bell: ClassVar[str] = "12(40)"
    remedy: ClassVar[Reason] = CORRECT
    steps_wagers = "open"
    offered: frozenset[str] = frozenset((COVER, HALF))
    waits_for_bell: bool = False
    seats: ClassVar[int] = 9
    standing: ClassVar[int] = 1
    """Players behind each seat for whom the dealer's page has keys; the console's device reports any."""
    board: ClassVar[tuple[str, ...]] = (COVER, HALF)
    """What a dealer can enter a bet on."""

    def __init__(self, options: CheminOptions) -> None:
        """Apply the choices of the house."""
        self.options = options
        self.terms = terms(self.id, "2022", options, VOID_WORDS)
        base = options.auction_base or options.minimum_bank
        self._least = Least(options.minimum_bank, base, options.auction_step)

    def bets(self) -> tuple[Bet, ...]:
        """The bets of punters and banker."""
        return (
            Bet(COVER, "1", "arts. 12(2), 12(46)", "the punter is higher; comes back on a tie"),
            Bet(HALF, "1/2", "arts. 12(2), 12(44)", "as a cover of half its chips; the other half comes back"),
            Bet("bank", "1", "arts. 12(2), 12(39)", "the banker is higher: what the punters have covered"),
            Bet("percentage", "0", "art. 12(48)", "what the house keeps of a bank that wins"),
        )

    def cite(self, article: str) -> str:
        """The article as results cite it."""
        return f"{TEXT} art. {article}"

    # ---- the life of a coup

    def fresh(self) -> Position:
        """A table without seats."""
        return Position()

    def begins(self, position: Position, event: Event) -> bool:
        """The opening of the bets alone begins a coup."""
        return False

    def begin(self, position: Position) -> tuple[Position, tuple[str, ...], bool, Effect]:
        """The next coup of the banker: not without four seated players (12(16)), nor after the last one (12(14))."""
        p = position
        bank = p.bank if p.bank.banker in p.bank.seats else first_bank(p.bank)
        p = replace(between(p, bank), left=max(p.left - 1, 0) if p.left > 0 else p.left)
        sitting = len([seat for seat in bank.seats if seated(seat)])
        if position.left == 0:
            return p, (), False, Effect(suspend=say("last_coup"), remedy=say("do_shuffle_coup"))
        if sitting < LEAST_SEATED:
            few = say("too_few_players", n=sitting, least=LEAST_SEATED)
            return p, (), False, Effect(suspend=few, remedy=say("do_seats_and_open"))
        return p, (), False, PLAIN

    def over(self, position: Position) -> bool:
        """Whether it is known who wins."""
        return position.end is not None

    def end(self, position: Position, frame: Frame[Position], *, void: bool) -> Position:
        """The bank after the coup; where bets or decisions may be missing it must be entered again."""
        p, bank = position, position.bank
        if void:
            bank = replace(bank, amount=0, unsure=True) if p.lost else replace(bank, offer=None)
        else:
            assert p.end is not None
            winner, laid = p.end.winner, covered(frame.round)
            table = p.claimant if p.claim == "table" else 0
            suivi = p.claimant if p.claim in ALONE and winner == "banker" else 0
            bank = after_coup(bank, winner, laid, self._kept(p, frame.round))
            bank = replace(bank, suivi=suivi, table=table, no_banco=0, unsure=False)
        for seat in p.leaving:
            bank = leaves(bank, seat)
        return between(p, bank)

    def resume(self, now: Position, ended: Position) -> Position:
        """The ended coup with its bank, at the present seats and in the present shoe."""
        bank = replace(ended.bank, seats=now.bank.seats)
        return replace(ended, bank=bank, burn=now.burn, left=now.left, end=None, leaving=())

    def missed(self, position: Position, event: Event) -> Position:
        """Before the bell, bets and the amount of the bank may be missing; after it, banco suivi, or only cards."""
        p = position
        if p.closed and (p.coup.words or not p.bank.suivi):
            return p
        return replace(p, lost=True, bank=replace(p.bank, unsure=True, amount=p.bank.amount if p.closed else 0))

    def known(self, position: Position, frame: Frame[Position]) -> Round:
        """The stakes of banker, partner and punters, which go back where the coup is void."""
        bank = position.bank
        laid = [Wager(seat, "bank", chips) for seat, chips in bank.shares(bank.amount).items() if chips]
        return replace(frame.round, wagers=(*laid, *frame.round.wagers))

    def laid(self, position: Position) -> dict[str, Any]:
        """The cards that lie open."""
        hands = self._open_hands(position)
        return {"hands": hands} if any(card != UNKNOWN for cards in hands.values() for card in cards) else {}

    def stands(self, now: Position, ended: Position, *, waits: bool) -> Position | None:
        """A disputed coup is paid as it had ended."""
        return replace(now, end=ended.end) if waits and self.alike(now, ended) else None

    def alike(self, one: Position, other: Position) -> bool:
        """Whether the same cards and stakes lie there."""
        return (one.coup, one.claim, one.bank.amount) == (other.coup, other.claim, other.bank.amount)

    # ---- events

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """One event."""
        p, event = position, fact.event
        match event:
            case SeatOpened(seat=seat):
                return self._joins(p, seat)
            case SeatClosed(seat=seat):
                return self._goes(p, seat, frame)
            case HandPassed(seat=seat):
                return handed(p, seat, self._least)
            case SeatActed(seat=seat, action=action, amount=amount):
                return self._acted(p, seat, action, amount, frame)
            case WagerPlaced() | WagerWithdrawn() if frame is not None:
                return self._bets(p, event, fact, frame.round)
            case CardDrawn(card=card, face=face):
                return self._card(p, card if card in POINTS else UNKNOWN, face, frame)
            case CardUnreadable():
                return self._card(p, UNKNOWN, None, frame)
            case BetsClosed() if frame is not None and not frame.round.closed:
                return self._bell(p, frame.round)
            case CutCardDrawn() if p.left == UNLIMITED:
                return replace(p, left=0 if p.coup.cards else 1 if frame is None else 0), BESIDE
            case ShoeStarted(decks=decks):
                return self._shoe(p, decks, frame)
            case ShoeEmptied() if frame is not None and len(p.coup.cards) < LAST_COUP_CARDS and p.end is None:
                return replace(p, left=0), Effect(void=say("shoe_empty_coup"), article="12(107)(d)")
            case ShoeEmptied():
                return replace(p, left=0), BESIDE
            case RoundPaid() if frame is not None and frame.round.closed:
                return p, Effect(suspend=say("paid_cards_missing"))
            case _:
                return p, BESIDE

    def _acted(
        self, p: Position, seat: int, action: str, amount: int, frame: Frame[Position] | None
    ) -> tuple[Position, Effect]:
        if not exists(seat):
            return p, noted("no_such_seat", seat, "12(3)")
        if frame is not None and frame.round.suspended:
            return p, PLAIN
        if action in _CLAIM and frame is not None:
            return self._claims(p, seat, action, amount, frame.round)
        if action in DECISIONS:
            return decide(p, action, seat, amount, frame.round if frame is not None else None, self._least)
        if frame is None or not p.closed:
            return p, noted("no_such_action", seat, "12(40)")
        p, effect = self._in_coup(p, seat, action, frame.round)
        return self._on(p, frame.round, effect)

    def _on(self, p: Position, round_: Round, effect: Effect) -> tuple[Position, Effect]:
        """The coup is over where both hands lie open and nothing is due."""
        coup = p.coup
        if effect.void or effect.suspend or p.end or len(coup.shown) < 2 or len(coup.cards) < 4:
            return self._balanced(p, round_, effect)
        if UNKNOWN in coup.cards or next_of(coup) != ("", ()):
            return p, effect
        found = count(coup)
        articles = ["12(2)", "12(9)", "12(65)", "12(68)"]
        articles += ["12(72)"] * found.redone + ["12(71)"] * coup.free + ["12(106)(b)"] * found.forgotten
        if found.redone and not found.natural:
            effect = replace(effect, notes=(*effect.notes, Note("false_draw", say("false_draw"), "12(72)")))
        end = End(found.winner, found.totals, found.player, found.banker, found.burnt, found.natural, tuple(articles))
        return self._balanced(replace(p, end=end), round_, effect)

    def _balanced(self, p: Position, round_: Round, effect: Effect) -> tuple[Position, Effect]:
        """Check that the chips paid, kept and returned equal those that were laid; otherwise a person decides."""
        if p.end is None:
            return p, effect
        kept, settled = self._kept(p, round_), self._settled(p, round_)
        laid = p.bank.amount + sum(one.amount for one in round_.wagers)
        back = sum(one.returned for one in settled)
        next_bank = after_coup(p.bank, "banker", covered(round_), kept).amount if p.end.winner == "banker" else 0
        sound = back == laid and covered(round_) <= p.bank.amount and next_bank <= MOST
        if sound:
            return p, effect
        return replace(p, end=None), replace(effect, suspend=say("pot_unbalanced"), remedy=VOID)

    # ---- seats

    def _joins(self, p: Position, seat: int) -> tuple[Position, Effect]:
        if not exists(seat):
            return p, noted("no_such_seat", seat, "12(3)")
        return replace(p, bank=seated_at(p.bank, seat)), BESIDE

    def _goes(self, p: Position, seat: int, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """A player who leaves during a coup leaves at its end; before the bell his bets go back."""
        if p.closed and frame is not None:
            return replace(p, leaving=p.leaving if seat in p.leaving else (*p.leaving, seat)), BESIDE
        p = replace(p, bank=leaves(p.bank, seat))
        if frame is None:
            return p, BESIDE
        return without(p, seat, frame.round)

    # ---- bets

    def _bets(
        self, p: Position, one: WagerPlaced | WagerWithdrawn, fact: Fact, round_: Round
    ) -> tuple[Position, Effect]:
        law = self.cite(self.article_bets)
        if isinstance(one, WagerWithdrawn) or round_.closed or one.bet not in self.offered:
            after = wager(round_, one, self.offered, law, fact, self.limits)
            if one.seat == p.claimant and after.wagers != round_.wagers:
                return without(p, one.seat, after)
            return p, Effect(round=after, evidence=False)
        why, law, left = self._bet_refused(p, one, round_)
        if why:
            return p, Effect(
                round=refuse(round_, one, why, say("seat_bet", seat=one.seat, bet=one.bet), self.cite(law), fact),
                evidence=False,
            )
        most = left * 2 if one.bet == HALF else left
        taken = replace(one, amount=min(one.amount, most))
        after = wager(round_, taken, self.offered, self.cite(self.article_bets), fact, self.limits)
        after = once(after) if after.given_back else after
        if one.amount > most and after.wagers != round_.wagers:
            over = one.amount - most
            after = irregular(
                after, "cover_cut", say("seat_chips_back", seat=one.seat, chips=over), self.cite("12(46)"), fact
            )
            after = replace(after, refused=not_taken(after.refused, replace(one, amount=over)))
        return replace(p, bank=seated_at(p.bank, one.seat)), Effect(round=after, evidence=False)

    def _bet_refused(self, p: Position, one: WagerPlaced, round_: Round) -> tuple[str, str, int]:
        """Why a bet is refused, the paragraph, and the amount of the bank that is left."""
        bank, left = p.bank, room(p, round_)
        if not exists(one.seat):
            return "no_such_seat", "12(3)", left
        if one.seat in (bank.banker, bank.partner):
            return "banker_bets", "12(31)" if one.seat == bank.partner else "12(30)", left
        if not bank.amount:
            return "bank_not_told", "12(39)", left
        if p.claim in ALONE:
            return "banco_made", "12(46)", left
        if one.bet == HALF and one.amount % 2:
            return "line_odd", "12(44)", left
        if not left:
            return "bank_covered", "12(46)", left
        held = by_seat(round_).get(one.seat, 0) + (one.amount // 2 if one.bet == HALF else one.amount)
        if held % self.options.minimum_bet and held < left:
            return "wrong_multiple", "12(36)", left
        return "", "", left

    def _claims(self, p: Position, seat: int, action: str, amount: int, round_: Round) -> tuple[Position, Effect]:
        """Banco in all forms: 12(46), 12(49)-(58), 12(90)."""
        bank, (claim, law) = p.bank, _CLAIM[action]
        code, article = self._claim_refused(p, seat, claim, round_)
        half = bank.amount - bank.amount // 2
        amount = bank.amount if claim in ALONE else amount or half
        if not code and not half <= amount <= bank.amount:
            code, article = "below_half", "12(56)"
        if not code and outranked(p, claim, seat):
            code, article = "banco_taken", law
        if code:
            return p, noted(code, seat, article)
        p, round_ = claimed(replace(p, bank=seated_at(bank, seat)), round_, claim, seat, amount)
        return p, Effect(round=round_)

    def _claim_refused(self, p: Position, seat: int, claim: Claim, round_: Round) -> tuple[str, str]:
        bank = p.bank
        if claim == "suivi" and seat != bank.suivi:
            return "no_suivi", "12(52)"
        if p.closed or round_.closed:
            # 12(53), 12(54): not after a player has seen his cards or spoken
            seen = p.coup.words or (p.looked and p.looked == punter(p, round_))
            if claim != "suivi" or seen:
                return "banco_late", "12(53)" if claim == "suivi" else "12(52)"
        if seat in (bank.banker, bank.partner):
            return "banker_bets", "12(31)" if seat == bank.partner else "12(30)"
        if not bank.amount or 2 * bank.amount > MOST:
            return "bank_not_told", "12(39)"
        if seat == bank.no_banco:
            return "may_not_claim", "12(90)"
        if claim == "table" and seat == bank.table:
            return "may_not_claim", "12(58)"
        return "", ""

    def _bell(self, p: Position, round_: Round) -> tuple[Position, Effect]:
        lacking = (Note("burn_incomplete", say("bell_burn"), "12(13)"),) if p.burn not in (0, UNCOUNTED) else ()
        bank = p.bank
        if bank.offer is not None and not bank.offer.taker:
            bank = replace(bank, amount=0, unsure=True)
        p = replace(p, bank=bank, burn=0, closed=True)
        if not bank.amount or not round_.wagers:
            why = say("bank_missing") if not bank.amount else say("cover_missing")
            return p, Effect(lacking, suspend=why, remedy=VOID)
        return p, Effect(lacking)

    # ---- the coup

    def _card(self, p: Position, card: str, face: str | None, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        if p.burn and (frame is None or not frame.round.closed):
            return self._burnt(p, card), BESIDE
        if frame is None:
            return p, Effect((Note("card_without_round", say("card_no_round"), "12(63)"),))
        if frame.round.suspended:
            return p, PLAIN
        first, coup = not p.coup.cards, p.coup
        if not frame.round.closed:
            return replace(p, closed=True), Effect(first=True, suspend=say("before_bell"))
        if card == UNKNOWN:
            return p, Effect(first=first, suspend=say("card_unreadable"))
        if face == "up" and len(coup.cards) < 4:
            burnt = (Note("card_face_up", say("card_face_up"), "12(107)(a)"),)
            return p, Effect(burnt, first=first)
        if len(coup.cards) >= MOST_CARDS:
            return p, Effect(suspend=say("card_more"))
        bank = replace(p.bank, offer=None) if p.bank.offer else p.bank
        p = replace(p, coup=replace(coup, cards=(*coup.cards, card)), bank=bank)
        return self._on(p, frame.round, Effect(first=first))

    def _burnt(self, p: Position, card: str) -> Position:
        """Art. 12(13): as many cards as the first one counts; if it is unreadable, all cards before the bell."""
        if p.burn > 0:
            return replace(p, burn=p.burn - 1)
        if card == UNKNOWN or p.burn == UNCOUNTED:
            return replace(p, burn=UNCOUNTED)
        worth = 0 if card[0] in FIGURES else PIPS[card]
        return replace(p, burn=max(worth - (self.options.burn == "inclusive"), 0))

    def _shoe(self, p: Position, decks: int, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """Arts. 12(32), 12(33): the banker who has not lost keeps the hand, and may halve the bank."""
        if frame is not None:
            return p, Effect(course="new_shoe", void=say("never_completed") if p.coup.cards else say("shoe_started"))
        text = say("wrong_decks", decks=decks, allowed=DECKS)
        wrong = (Note("wrong_number_of_decks", text, "12(4)"),) if decks not in (0, DECKS) else ()
        bank = p.bank
        if bank.dealt and bank.amount:
            bank = replace(bank, may=tuple(dict.fromkeys((*bank.may, "halve"))))
        return Position(bank, burn=FROM_FIRST), Effect(wrong, course="new_shoe")

    def _in_coup(self, p: Position, seat: int, action: str, round_: Round) -> tuple[Position, Effect]:
        coup, banker, mine = p.coup, p.bank.banker, punter(p, round_)
        shown = tuple(dict.fromkeys((*coup.shown, "banker" if seat == banker else "player")))
        match action:
            case "looks":
                return replace(p, looked=seat), PLAIN
            case "cards_to" if not coup.words and any(one.seat == seat for one in round_.wagers):
                return replace(p, given=seat, looked=0), PLAIN
            case "by_table" | "fault_105b":
                notes = (note("fault_105b", seat, "12(105)(b)"),) if action == "fault_105b" else ()
                return replace(p, coup=replace(coup, by_table=True)), Effect(notes)
            case "discarded" if seat in (banker, mine):
                winner: Literal["player", "banker"] = "player" if seat == banker else "banker"
                open_ = self._open_hands(p)
                return replace(p, end=End(winner, (), open_["player"], open_["banker"], articles=("12(76)",))), PLAIN
            case _ if action in NULL:
                return p, Effect(void=NULL[action][0], article=NULL[action][1])
            case _ if action in BURNT and coup.cards:
                burnt = note(action, seat, BURNT[action])
                return replace(p, coup=replace(coup, cards=coup.cards[:-1])), Effect((burnt,))
            case _ if action.removeprefix("fault_") in BY_HANDS:
                article = f"12(105)({action[-1]})"
                return replace(p, fault=action.removeprefix("fault_")), Effect(
                    (note(action, seat, article),), suspend=say("fault_by_hands"), remedy=CORRECT
                )
        if len(coup.cards) < 4:
            return p, noted("too_early", seat, "12(63)")
        if seat == mine and action in ("draw", "stand", "show"):
            return self._punter_says(p, seat, action, shown)
        if seat == banker and action == "show" and coup.words:
            return replace(p, coup=replace(coup, shown=shown)), PLAIN
        if seat == banker and action in ("give", "refuse") and len(coup.words) > 1:
            return replace(p, coup=replace(coup, gives=action)), PLAIN
        if seat == banker and action in ("draw", "stand") and "banker" in coup.shown:
            return replace(p, coup=replace(coup, word=action)), PLAIN
        return p, noted("no_such_action" if seat in (banker, mine) else "not_in_hand", seat, "12(66)")

    def _punter_says(self, p: Position, seat: int, action: str, shown: tuple[str, ...]) -> tuple[Position, Effect]:
        coup = p.coup
        if action == "show":
            words = coup.words or ("show",)
            return replace(p, coup=replace(coup, words=words, shown=shown)), PLAIN
        if not coup.words:
            return replace(p, coup=replace(coup, words=(action,))), PLAIN
        if len(coup.words) > 1 or action == coup.words[0] or coup.shown or len(coup.cards) > 4:
            return p, noted("acted_twice", seat, "12(106)(c)")
        return replace(p, coup=replace(coup, words=(*coup.words, action))), noted("word_changed", seat, "12(106)(c)")

    # ---- a person enters the hands

    def lay(
        self,
        position: Position,
        hands: Hands,
        frame: Frame[Position],
        before: Frame[Position] | None,
        *,
        named: bool,
        reopened: bool,
    ) -> tuple[Position, Effect]:
        """Both hands as they lie at the end, or why they cannot be used."""
        p, player, banker = position, hands.get("player", ()), hands.get("banker", ())
        if reopened and any(isinstance(fact.event, RoundPaid) for fact in frame.facts):
            return p, Effect((Note("claim_after_end", say("claim_after_end"), "12(105)(k)"),))
        if p.lost or not p.bank.amount or not frame.round.wagers:
            return p, Effect(suspend=say("stakes_unknown"), remedy=VOID, again=True)
        if set(hands) - set(SIDES):
            return p, Effect(suspend=say("foreign_hand"), again=True)
        if p.fault:
            totals = faulty(p.fault, player, banker)
            articles: tuple[str, ...] = ("12(2)", f"12(105)({p.fault[-1]})")
        else:
            totals = (points(player), points(banker)) if allowed(p.coup, player, banker) else None
            articles = ("12(2)", "12(9)", "12(65)", "12(68)")
        if totals is None:
            return p, Effect(suspend=say("hands_by_law"), again=True)
        winner: Literal["player", "banker", "tie"] = "tie" if totals[0] == totals[1] else "player"
        winner = "banker" if totals[1] > totals[0] else winner
        natural = not p.fault and len(player) == len(banker) == 2 and max(totals) >= NATURAL
        laid = replace(p, end=End(winner, totals, player, banker, natural=natural, articles=articles))
        return self._balanced(laid, frame.round, Effect(round=frame.round))

    # ---- the result

    def _kept(self, p: Position, round_: Round) -> int:
        """Art. 12(48): of what the bank wins, rounded down to the smallest chip."""
        if p.end is None or p.end.winner != "banker":
            return 0
        chip = self.options.smallest_chip
        return covered(round_) * self.options.percentage // 1000 // chip * chip

    def _winners(self, p: Position, round_: Round) -> tuple[Win, ...]:
        """The bets that win, and below 0 the part that is lost of a stake of which the rest comes back.

        Of chips on the line a half is lost (12(44)), of a bank what the punters had covered (12(46)).
        """
        assert p.end is not None
        bank, winner = p.bank, p.end.winner
        if winner == "tie":
            return ()
        sign = 1 if winner == "banker" else -1
        won = bank.shares(covered(round_))
        parts = [
            Win("bank", str(sign * Fraction(won[seat], chips)), seat=seat if bank.partner else 0)
            for seat, chips in bank.shares(bank.amount).items()
            if chips
        ]
        laid = {COVER: -sign * Fraction(1), HALF: -sign * Fraction(1, 2)}
        parts += [Win(bet, str(pays)) for bet, pays in laid.items() if _on_bet(round_, bet)]
        parts.sort(key=lambda one: one.pays.startswith("-"))
        return tuple(one for one in parts if one.pays != "-1")

    def _settled(self, p: Position, round_: Round) -> tuple[Settlement, ...]:
        """The bank, then the punters from the right of the banker (12(96)), then the house."""
        assert p.end is not None
        bank, winner = p.bank, p.end.winner
        sign = {"player": 1, "banker": -1, "tie": 0}[winner]
        won = bank.shares(covered(round_))
        found = [
            Settlement(seat, "bank", chips, chips - sign * won[seat])
            for seat, chips in bank.shares(bank.amount).items()
        ]
        found += [
            Settlement(one.seat, one.bet, one.amount, one.amount + sign * plays(one))
            for one in sorted(round_.wagers, key=lambda one: rank(one.seat, bank.banker))
        ]
        kept = bank.shares(self._kept(p, round_))
        return (*found, *(Settlement(seat, "percentage", chips, 0) for seat, chips in kept.items() if chips))

    def resolve(self, position: Position, frame: Frame[Position]) -> Result:
        """The payments, and the paragraphs that they rest on."""
        p, end, round_ = position, position.end, frame.round
        assert end is not None
        kept, bank = self._kept(p, round_), p.bank
        pushes = (COVER, HALF, "bank") if end.winner == "tie" else ()
        articles = (
            *end.articles,
            *(("12(31)",) if bank.partner else ()),
            *(("12(44)",) if _on_bet(round_, HALF) else ()),
            *(("12(48)",) if kept else ()),
        )
        result = resolved(
            replace(round_, wagers=()),
            self.terms,
            outcome={**self._ended(p, end), **self._stakes(p, round_), **({"percentage": kept} if kept else {})},
            winners=self._winners(p, round_),
            pushes=tuple(bet for bet in pushes if bet == "bank" or _on_bet(round_, bet)),
            announcements=_called(end),
            law=tuple(map(self.cite, articles)),
        )
        return replace(result, settlements=(*self._settled(p, round_), *result.settlements))

    def _ended(self, p: Position, end: End) -> dict[str, Any]:
        return {
            "hands": {"player": end.player, "banker": end.banker},
            **({"totals": dict(zip(SIDES, end.totals, strict=True))} if end.totals else {}),
            "winner": end.winner,
            "natural": end.natural,
            **({"burnt": end.burnt} if end.burnt else {}),
        }

    # ---- the view

    def _stakes(self, p: Position, round_: Round | None) -> dict[str, Any]:
        """The stakes of each player."""
        bank = p.bank
        found: dict[str, Any] = {"banker": bank.banker, "bank": bank.amount}
        if bank.partner and bank.amount:  # where the amount must be reported again, the partner must be, too
            found["partner"] = bank.partner
        if bank.aside:
            found["aside"] = bank.aside
        if round_ is not None and round_.wagers:
            laid = {f"seat_{seat}": chips for seat, chips in by_seat(round_).items()}
            found |= {"punter": punter(p, round_), "covered": covered(round_), "laid": laid}
        return found | ({"claim": p.claim} if p.claim else {})

    def _hand(self, p: Position, shoe: int) -> dict[str, Any]:
        """The seats, and the banker's choices."""
        bank, offer = p.bank, p.bank.offer
        found: dict[str, Any] = {"shoe": shoe, "seated": tuple(sorted(bank.seats)), "won": bank.won}
        if bank.may:
            found["may"] = bank.may
        if offer is not None:
            bids = {f"seat_{one.seat}": one.amount for one in offer.bids}
            found["offer"] = BankOffer(offer.passer, offer.level, offer.auction, offer.taker, bids)
        return found | ({"last": True} if p.left == 0 else {})

    def _open_hands(self, p: Position) -> dict[str, tuple[str, ...]]:
        """The cards as everybody sees them: the first two of a hand once it was shown, third cards at once."""
        coup, found = p.coup, dict[str, tuple[str, ...]]()
        rest = coup.cards[4:]
        third = rest[:1] if coup.said == "draw" else ()
        for side, first, more in (
            ("player", coup.cards[0:4:2], third),
            ("banker", coup.cards[1:4:2], rest[len(third) :]),
        ):
            found[side] = (*(first if side in coup.shown else (UNKNOWN,) * len(first)), *more)
        return found

    def view(self, state: Table[Position]) -> View:
        """Phase: idle, burning, betting, closed, dealing, deciding, showdown, suspended, resolved, ended."""
        p, frame = state.position, state.open
        hand = self._hand(p, state.shoe)
        if frame is None:
            return self._between_coups(state, {**hand, **self._stakes(p, None)})
        round_, coup = frame.round, p.coup
        detail = {**hand, **self._stakes(p, round_), "left": room(p, round_)}
        if coup.cards:
            hands = self._open_hands(p)
            totals = {side: points(cards) for side, cards in hands.items() if cards and UNKNOWN not in cards}
            detail |= {"hands": hands, "totals": totals}
        if coup.said:
            detail["said"] = coup.said
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if not round_.closed:
            due = () if p.bank.amount else ("bank",)
            asked = {"due": Due("decision", "banker", p.bank.banker, due)} if due else {}
            return View(round_.id, "betting", {**detail, **asked})
        what, words = next_of(coup)
        if what == "card":
            return View(round_.id, "dealing" if coup.cards else "closed", {**detail, "due": Due("card", words[0])})
        seat = p.bank.banker if what == "banker" else punter(p, round_)
        last = what == "player" and words == ("show",)
        return View(
            round_.id, "showdown" if last else "deciding", {**detail, "due": Due("decision", what, seat, words)}
        )

    def _between_coups(self, state: Table[Position], hand: dict[str, Any]) -> View:
        p, last = state.position, state.last
        if p.burn:
            return View("", "burning", {**hand, "burn": p.burn} if p.burn > 0 else hand)
        if last is None or not last.counts or last.result is None:
            return View("", "ended" if p.left == 0 else "idle", hand)
        return View(last.round.id, "resolved", {**last.result.outcome, **hand, "say": last.result.announcements})


def _on_bet(round_: Round, bet: str) -> bool:
    return any(one.bet == bet for one in round_.wagers)


def _called(end: End) -> dict[str, str]:
    words = CALLS[end.winner if end.totals else f"{end.winner}_only"]
    return dict(zip(("pt", "zh-Hant", "en"), (text.format(*end.totals) for text in words), strict=True))
