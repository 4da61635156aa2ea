"""The coups of baccarat that all texts share: shoe, burn, deal, corrections and the result.

Called by the rulesets of the texts, which have options, bets, deductions and words. `House` holds what a text or a
house chooses about the cards, `Articles` where the text says it. The docstring of `rules/macau/baccarat.py` describes
how a coup goes on after a loss, and to which coup corrected hands belong. Where a card is burnt before each coup but
the first, it is unknown after a loss whether one is due: docs/decisions/0049-a-burn-in-doubt-suspends-the-coup.md.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    CardDrawn,
    CardsReturned,
    CardUnreadable,
    CutCardDrawn,
    Event,
    RoundPaid,
    RoundVoided,
    ShoeEmptied,
    ShoeStarted,
)
from protocols.contract.facts import BaccaratFacts, RoundFacts
from protocols.contract.reasons import Reason, say
from rules.engine.facts import BESIDE, PLAIN, Effect, Fact, Frame, Hands, Note, Table
from rules.engine.money import odds
from rules.engine.refold import Game
from rules.engine.rounds import Round, Terms, resolved, without_bets
from rules.engine.ruleset import Award, Bet, Result, View, Win
from rules.games.baccarat import NO_CARD, beyond, deal, due, hands, told_again
from rules.games.cards import PIPS, POINTS, UNKNOWN, points

MAX_TOLD: Final = 16
MAIN: Final = ("player", "banker", "tie")

CORRECT: Final = say("do_correct_coup")
ONCE_MORE: Final = say("do_once_more")
RESHUFFLE: Final = say("do_shuffle_coup")

VOID_WORDS: Final = {"pt": "Lance nulo", "zh-Hant": "此局無效", "en": "Void"}

# No cut card yet: any number of coups may still begin.
UNLIMITED: Final = -1
# How many cards left the shoe is not known.
UNCOUNTED: Final = -1
# As many cards as the value of the first one.
BY_FIRST_CARD: Final = -1

Words: TypeAlias = tuple[str, str, str]
"""Portuguese, Chinese, English."""
CALLS: Final[Mapping[str, Words]] = {
    "tie": ("Empate a {0}", "和，{0}點", "Tie, {0} all"),
    "player": ("Jogador ganha, {0} contra {1}", "閒贏，{0}點對{1}點", "Player wins, {0} to {1}"),
    "banker": ("Banca ganha, {1} contra {0}", "莊贏，{1}點對{0}點", "Banker wins, {1} to {0}"),
    "player_pair": ("par de jogador", "閒對", "player pair"),
    "banker_pair": ("par de banca", "莊對", "banker pair"),
}


class House(Struct, frozen=True):
    """How the cards are handled.

    `shoe`: a shoe, and no dealing shuffler. `bell`: a coup is dealt only after the bell. `burn`: cards burnt after
    shuffling. `coup_burn`: before which coups a card is burnt. `one_more`: one coup follows that in which the cut card
    comes. `cut_card_voids`: where it comes before a coup's first card that coup is not dealt. `handled`: players look
    at the cards. `ties_by`: which of two players with equal bets does.
    """

    decks: int
    shoe: bool
    bell: bool
    burn: int
    coup_burn: Literal["never", "always", "but_first"] = "never"
    one_more: bool = False
    cut_card_voids: bool = True
    handled: bool = False
    ties_by: Literal["first_bet", "lowest_seat"] = "first_bet"


class Articles(Struct, frozen=True):
    """The paragraphs of a text. `face_up`, `face_down`: empty where the text says nothing of such a card."""

    decks: str
    burn: str
    coup_burn: str
    last_coup: str
    shuffler: str
    returned: str
    face_up: str
    face_down: str
    error: str
    demo: str = ""


class Position(Struct, frozen=True):
    """The shoe, and the coup in it.

    `burn` counts the cards of the set still to be burnt; when it is `unsure`, the burn lasts until the bets are opened,
    or under `first_card` until a person states that it is over. `left`: coups that may still begin in this shoe;
    `dealt`: those that began, `demos` of them demonstrations; `demo_next`: the event that declared the next coup a
    demonstration. `spent`: the cards now coming belong to a void coup. `order`: whether the next coup is the first of
    its shoe, which decides the burn where a card is burnt before every later coup. `drawn`: cards that left the shoe.

    Of the coup: `cards` in the order of the deal; `burns`: whether a card is burnt before it, and `burnt`: whether that
    card is out; `told`: the cards that the shoe reported since the bell; `aside`: those that came while the coup waited
    for a person, after its end those that belong to none of its hands; `entered`: cards that only a correction brought;
    `entered_before`: the same of the coup before. The shoe may still report entered cards late.
    """

    burn: int = 0
    unsure: bool = False
    left: int = UNLIMITED
    dealt: int = 0
    demos: int = 0
    demo_next: str = ""
    spent: bool = False
    order: Literal["first", "later", "unknown"] = "later"
    drawn: int = UNCOUNTED
    cards: tuple[str, ...] = ()
    face_up: tuple[str, ...] = ()
    burnt: bool = False
    corrected: bool = False
    told: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    entered: tuple[str, ...] = ()
    entered_before: tuple[str, ...] = ()
    burns: Literal["yes", "no", "unknown"] = "no"

    @property
    def begun(self) -> bool:
        """Whether a card of the coup has left the shoe."""
        return bool(self.cards) or self.burnt


NO_COUP: Final = Position()
COUP_FIELDS: Final = ("cards", "face_up", "burnt", "corrected", "told", "aside", "entered", "entered_before", "burns")


class BaccaratState(Table[Position], frozen=True):
    """The state of a table."""


class Coup(Struct, frozen=True):
    """The totals and pairs of a coup. `drawn`: the banker's hand has three cards."""

    player: int
    banker: int
    drawn: bool
    player_pair: bool
    banker_pair: bool

    @property
    def winner(self) -> Literal["player", "banker", "tie"]:
        """The side with the higher total."""
        return "player" if self.player > self.banker else "banker" if self.banker > self.player else "tie"


class Paid(Struct, frozen=True):
    """The text's part of a coup's end: winning bets, paragraphs, and the dealer's calls after the winner."""

    wins: tuple[Win, ...]
    articles: tuple[str, ...]
    pushes: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    facts: dict[str, bool] = {}


class Outcome(Struct, frozen=True):
    """All consequences of a coup, computed once."""

    facts: dict[str, Any]
    winners: tuple[Win, ...]
    pushes: tuple[str, ...]
    announcements: dict[str, str]
    law: tuple[str, ...]


class Coups(Game[Position]):
    """A table of baccarat; a text derives from it."""

    Options: ClassVar[type[Any]]
    State: ClassVar[type[BaccaratState]] = BaccaratState
    Facts: ClassVar[type[RoundFacts]] = BaccaratFacts
    own: ClassVar[frozenset[type[Event]]] = frozenset(
        (CardDrawn, CardUnreadable, CutCardDrawn, ShoeStarted, ShoeEmptied, CardsReturned)
    )
    numbers_shoes: ClassVar[bool] = True
    remedy: ClassVar[Reason] = CORRECT
    calls: ClassVar[Mapping[str, Words]] = CALLS

    def __init__(self, house: House, articles: Articles, terms: Terms, bets: tuple[Bet, ...]) -> None:
        """Each end of a coup is computed once, when it first occurs.

        All 1,900 would take 10 ms and 1.5 MiB for each table.
        """
        self.house = house
        self.articles = articles
        self.waits_for_bell = house.bell
        self.terms = terms
        self._bets = bets
        self.offered = frozenset(bet.id for bet in bets)
        self._outcome = cache(self._worked_out)
        self._deal_law = cache(lambda *deal: self._cited(self.dealt(*deal)))

    def best(self) -> Mapping[str, Fraction]:
        """The largest prize of each bet."""
        best: dict[str, Fraction] = {}
        ends = product(range(10), range(10), (False, True), (False, True), (False, True))
        for win in (win for end in ends for win in self._outcome(*end).winners):
            best[win.bet] = max(best.get(win.bet, Fraction(0)), odds(win.pays))
        return best

    @abstractmethod
    def paid(self, coup: Coup) -> Paid:
        """The winning bets and their paragraphs."""

    @abstractmethod
    def dealt(self, player: int, banker: int, third: int) -> tuple[str, ...]:
        """The paragraphs a deal rests on, by both totals of two cards and the player's third card, or NO_CARD."""

    def awards(self, cards: tuple[str, ...], known: Round, frame: Frame[Position]) -> tuple[Award, ...]:
        """The jackpots of a coup."""
        return ()

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered, in the order of the text."""
        return self._bets

    def _cited(self, articles: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(self.cite, articles))

    def view(self, state: Table[Position]) -> View:
        """Phase: idle, burning, betting, closed, dealing, suspended, resolved, ended (no further coup in this shoe)."""
        p, frame = state.position, state.open
        last = state.last if state.last is not None and state.last.counts else None
        burning = bool(p.burn) or p.unsure
        if frame is None and (last is None or burning):
            phase = "burning" if burning else "ended" if p.left == 0 else "idle"
            return View("", phase, {"shoe": state.shoe, "burn": p.burn} if p.burn > 0 else {"shoe": state.shoe})
        shown = frame or last
        assert shown is not None
        round_, cards = shown.round, p.cards if frame is not None or last is None else (last.position or p).cards
        detail: dict[str, Any] = {"demo": round_.demo, "last": p.left == 0, **self._shown(cards)}
        if frame is None:
            return View(round_.id, "resolved", detail)
        if self.house.handled and round_.closed and not frame.lost:
            detail["handles"] = {side: seat for side in ("player", "banker") if (seat := self._highest(round_, side))}
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if not round_.closed:
            return View(round_.id, "betting", detail)
        burn_due = self.house.coup_burn == "but_first" and p.burns == "yes" and not p.begun
        following = "burn" if burn_due else due(p.cards)
        return View(round_.id, "dealing" if p.begun else "closed", {**detail, "next": following})

    # ---- the life of a coup

    def fresh(self) -> Position:
        """A new table is between two coups, after its burn."""
        return replace(NO_COUP, order="unknown") if self.house.coup_burn == "but_first" else NO_COUP

    def begins(self, position: Position, event: Event) -> bool:
        """Whether the event is a card that begins a coup: neither burnt nor stray."""
        unreadable = isinstance(event, CardUnreadable) or (isinstance(event, CardDrawn) and event.card not in POINTS)
        if not (unreadable or isinstance(event, CardDrawn)):
            return False
        burning = bool(position.burn) or position.unsure
        if burning and (self.house.bell or not (unreadable or position.unsure)):
            return False
        if position.left == 0 or position.spent:
            return False
        return not (unreadable and self.house.bell)

    def begin(self, position: Position) -> tuple[Position, tuple[str, ...], bool, Effect]:
        """Another coup of the shoe."""
        p, demo = position, bool(position.demo_next)
        effect = Effect(suspend=say("last_coup"), remedy=RESHUFFLE) if p.left == 0 else PLAIN
        evidence = (p.demo_next,) if demo else ()
        p = replace(
            _with_coup(p, NO_COUP),
            dealt=p.dealt + 1,
            left=p.left - 1 if p.left > 0 else p.left,
            demos=p.demos + demo,
            demo_next="",
            spent=False,
            entered_before=p.entered if p.dealt else (),
            burns=self._burns(position),
        )
        return p, evidence, demo, effect

    def _burns(self, p: Position) -> Literal["yes", "no", "unknown"]:
        match self.house.coup_burn, p.order:
            case ("always", _) | ("but_first", "later"):
                return "yes"
            case "but_first", "unknown":
                return "unknown"
            case _:
                return "no"

    def over(self, position: Position) -> bool:
        """Whether the table of third cards gives no further card."""
        return due(position.cards) is None

    def end(self, position: Position, frame: Frame[Position], *, void: bool) -> Position:
        """The position after a coup; cards that still come from a void coup belong to no coup."""
        if position.order == "first":  # void before its cards: no text says whether the next is the first one
            position = replace(position, order="later" if position.begun else "unknown")
        if not void:
            return position
        return replace(position, spent=due(position.cards) is not None or bool(position.aside), entered=())

    def resume(self, now: Position, ended: Position) -> Position:
        """The ended coup in the present shoe."""
        return _with_coup(now, ended)

    def laid(self, position: Position) -> dict[str, Any]:
        """The hands on the table."""
        if not position.cards:
            return {}
        player, banker = self._lie(position.cards)
        return {"hands": {"player": player, "banker": banker}}

    def missed(self, position: Position, event: Event) -> Position:
        """After a loss a card of the burn, or the start of a shoe, may be missing."""
        position = replace(position, unsure=position.unsure or bool(position.burn))
        if self.house.coup_burn != "but_first":
            return position
        return replace(position, order="unknown", burns=position.burns if position.begun else "unknown")

    def set_aside(self, position: Position, fact: Fact) -> Position:
        """Keep a doubtful card."""
        if not isinstance(fact.event, CardDrawn):
            return position
        told, aside = (*position.told, fact.event.card), (*position.aside, fact.event.card)
        return replace(position, burn=0, told=told[-MAX_TOLD:], aside=aside[-MAX_TOLD:])

    def doubts_last(self, last: Frame[Position], fact: Fact) -> bool:
        """Whether the shoe was started before the last card of a coup: cards of its burn were dealt to the hands.

        The age of the start must be known, and the bell ends the burn in any case.
        """
        if not isinstance(fact.event, ShoeStarted) or not fact.event.age_ms or self.house.bell:
            return False
        return fact.time < last.facts[-1].time

    def left_over(self, position: Position) -> Effect:
        """Without a bell the next card may still belong to the coup that ended."""
        if self.house.bell or not position.aside:
            return PLAIN
        return Effect(next_doubt=say("told_before"))

    # ---- events

    def step(self, position: Position, fact: Fact, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """One event."""
        p = position
        match fact.event:
            case CardDrawn(card=card, face=face) if card in POINTS:
                return self._between_coups(p, card) if frame is None else self._card(p, fact, frame, card, face)
            case CardDrawn() | CardUnreadable():
                return self._unreadable(p, frame)
            case BetsClosed():
                return self._rung(p, frame)
            case BetsOpened() if frame is not None and frame.round.suspended and p.told:
                return replace(p, unsure=False), PLAIN  # otherwise more cards of the burn may come
            case RoundVoided() if frame is not None and frame.round.closed:
                return replace(p, unsure=False), PLAIN
            case RoundPaid():
                missing = say("paid_cards_missing")
                if frame is None:
                    return replace(p, spent=False), PLAIN
                return p, Effect(suspend=missing) if p.begun else PLAIN
            case ShoeStarted(decks=decks):
                return self._shoe_started(p, decks, frame)
            case CutCardDrawn():
                return self._cut_card(p, frame)
            case ShoeEmptied() if self.house.shoe:
                return self._emptied(replace(p, left=0), frame)
            case CardsReturned() if not self.house.shoe and frame is not None and p.begun:
                text = say("cards_returned_coup")
                return p, Effect((Note("cards_returned_early", text, self.articles.returned),))
            case _:
                return p, BESIDE

    def _card(
        self, p: Position, fact: Fact, frame: Frame[Position], card: str, face: str | None
    ) -> tuple[Position, Effect]:
        if frame.round.suspended:
            return self.set_aside(p, fact), PLAIN
        if not frame.round.closed:
            if p.burn and not p.unsure:
                return self._burnt(p, card), BESIDE
            if self.house.bell or p.unsure:
                burn = say("burn_unseen")
                early = burn if p.unsure else say("before_bell")
                p = replace(p, unsure=p.unsure and not self.house.bell)
                return self.set_aside(p, fact), Effect(first=True, suspend=early)
        if card in p.entered or (not p.told and card in p.entered_before):
            reason = say("by_hand", card=card)
            return self.set_aside(p, fact), Effect(first=not p.told, suspend=reason)
        if p.burns == "unknown" and not p.begun:
            order = "later" if frame.round.closed else p.order  # after the bell it is a card of this coup
            p = self.set_aside(replace(p, order=order), fact)
            return p, Effect(first=len(p.told) == 1, suspend=say("coup_burn_unknown"))
        effect = Effect(first=not p.told)
        p = replace(p, told=(*p.told, card)[-MAX_TOLD:])
        if p.burns == "yes" and not p.burnt:
            return replace(p, burnt=True), effect
        if face == "down" and (article := self.articles.face_down):
            effect = replace(effect, notes=(Note("card_face_down", say("card_face_down", card=card), article),))
        face_up = (*p.face_up, card) if face == "up" and self.articles.face_up else p.face_up
        return replace(p, cards=(*p.cards, card), face_up=face_up), effect

    def _between_coups(self, p: Position, card: str) -> tuple[Position, Effect]:
        return (self._burnt(p, card), PLAIN) if p.burn or p.unsure else (p, self._stray(p))

    def _burnt(self, p: Position, card: str) -> Position:
        """A card of the set after shuffling."""
        return replace(p, burn=max((PIPS[card] if p.burn == BY_FIRST_CARD else p.burn) - 1, 0))

    def _stray(self, p: Position) -> Effect:
        """The effect of a card that cannot begin a coup: after the last coup, or from a void one."""
        if p.left == 0:
            return Effect((Note("card_after_last_coup", say("card_last_coup"), self.articles.last_coup),))
        if p.spent:
            return Effect((Note("card_of_void_coup", say("card_void_coup"), self.articles.error),))
        return Effect((Note("unreadable_between_coups", say("card_may_have_left"), self.articles.error),))

    def _unreadable(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        if frame is None:
            if not (p.burn or p.unsure):
                return p, self._stray(p)
            text = say("burn_uncertain")
            return replace(p, unsure=True), Effect((Note("burn_uncertain", text, self.articles.burn),))
        if frame.round.closed:
            waits = frame.round.suspended and not self.house.bell  # the card may belong to the next coup
            return p, Effect(suspend=say("card_unreadable"), next_doubt=say("before_card") if waits else None)
        reason = say("burn_unreadable") if p.burn else say("card_unreadable")
        unsure = not self.house.bell and (p.unsure or bool(p.burn))
        return replace(p, burn=0, unsure=unsure), Effect(first=True, suspend=reason)

    def _rung(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        assert frame is not None
        if frame.round.closed:
            during = (Note("bell_during_deal", say("bell_dealing"), self.articles.error),)
            return p, Effect(during) if p.begun and not frame.round.suspended else PLAIN
        lacking = (Note("burn_incomplete", say("bell_burn"), self.articles.burn),)
        return replace(p, burn=0, unsure=False), Effect(lacking) if p.burn and not p.unsure else PLAIN

    # ---- the shoe

    def _shoe_started(self, p: Position, decks: int, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        if frame is not None:
            return p, Effect(course="new_shoe", void=say("never_completed") if p.begun else say("shoe_started"))
        text = say("wrong_decks", decks=decks, allowed=self.house.decks)
        wrong = (
            (Note("wrong_number_of_decks", text, self.articles.decks),) if decks not in (0, self.house.decks) else ()
        )
        started = Position(burn=self.house.burn, demo_next=p.demo_next, order="first")
        return started, Effect(wrong, course="new_shoe")

    def _cut_card(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        """The cut card. By some texts one that comes before the first card of a coup belongs to the coup before.

        Otherwise, where openings are not reported, a cut card between two coups belongs to the next one.
        """
        if not self.house.shoe:
            return p, Effect((Note("cut_card_in_shuffler", say("cut_card_shuffler"), self.articles.shuffler),))
        if p.left != UNLIMITED:  # one of several cut cards
            return p, PLAIN
        waiting = frame is not None and not p.begun and not frame.round.suspended
        one_more, void = self.house.one_more, say("cut_card_before_first_card")
        voids = waiting and not one_more and self.house.cut_card_voids
        of_the_next = frame is None and not (self.house.bell or self.house.cut_card_voids)
        p = replace(p, left=1 if of_the_next or (one_more and not waiting) else 0)
        return p, Effect(void=void, article=self.articles.last_coup) if voids else PLAIN

    def _emptied(self, p: Position, frame: Frame[Position] | None) -> tuple[Position, Effect]:
        if frame is None:
            return p, PLAIN
        if not p.begun and not frame.round.suspended:
            return p, Effect(void=say("shoe_emptied"), article=self.articles.last_coup)
        return p, Effect(suspend=say("shoe_empty_coup"), remedy=RESHUFFLE)

    # ---- an error of the deal: the hands are replaced, and the deal goes on from there

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
        """The position of the coup with these hands, or why they are refused."""
        p, cards = position, deal(hands)
        whole = cards is not None and due(cards) is None
        if reopened and not p.dealt and not whole:  # its shoe is over, so it can receive no further card
            text = say("corrected_not_whole", round=frame.round.id)
            return p, Effect((Note("correction_incomplete", text, self.articles.error),))
        if cards and not named and (reopened or before is not None) and _of_another(p, frame, before, cards):
            if reopened and not p.dealt:
                text = say("corrected_another", round=frame.round.id)
                return p, Effect((Note("correction_of_another", text, self.articles.error),))
            same = before is not None and before.position is not None and cards == before.position.cards
            return p, Effect(suspend=say("other_coup"), remedy=CORRECT if same else ONCE_MORE)
        reason = None
        if cards is None:
            reason = say("hands_by_law")
        elif not cards and frame.result is not None:
            reason = say("no_hand_told")
        elif not cards and p.burns != "no":
            reason = say("burn_unknown")
        if cards is None or reason:
            return p, Effect(suspend=reason, again=True)
        laid = replace(
            p,
            unsure=p.unsure and reopened,  # entered hands show that the burn is over
            cards=cards,
            face_up=tuple(card for card in p.face_up if card in cards),
            burnt=p.burns == "yes",
            corrected=True,
            order="later" if p.dealt else p.order,  # else its shoe is over
            aside=self._none_of(p, cards) if whole else (),
            entered=beyond(cards, p.told),
        )
        return laid, PLAIN

    def _none_of(self, p: Position, laid: tuple[str, ...]) -> tuple[str, ...]:
        """The cards that came while the coup waited and belong neither to its hands now nor to those entered before."""
        aside = p.aside
        if p.burns != "no" and not p.burnt and aside[1:2] == laid[:1]:
            aside = aside[1:]  # the card burnt before the coup: the first one of the hands came next
        return beyond(aside, (*beyond(laid, p.cards), *p.entered, *p.entered_before))

    def never_was(self, position: Position, before: Frame[Position], frame: Frame[Position], hands: Hands) -> Effect:
        """Void the open coup if its hands are those of the coup before; a coup opened by the bell is always valid."""
        cards, known = deal(hands), before.position
        begun = next((fact.event for fact in frame.facts if isinstance(fact.event, BetsClosed | CardDrawn)), None)
        if not cards or known is None or isinstance(begun, BetsClosed):
            return PLAIN
        if told_again(known.cards + position.told, cards):
            return Effect(void=say("told_twice"))
        return Effect(void=say("not_dealt") if cards == known.cards else None)

    # ---- the result

    def resolve(self, position: Position, frame: Frame[Position]) -> Result:
        """The result of the hands, with its paragraphs."""
        p, round_, articles = position, frame.round, self.articles
        known = without_bets(round_) if frame.lost else round_
        player, banker = hands(p.cards)
        first = (points(player[:2]), points(banker[:2]))
        third = POINTS[player[2]] if len(player) == 3 else NO_CARD
        pairs = (player[0][0] == player[1][0], banker[0][0] == banker[1][0])
        end = self._outcome(points(player), points(banker), len(banker) == 3, *pairs)
        law = self._deal_law(*first, third) + end.law
        if p.burnt or p.face_up or p.corrected or round_.demo:
            said = ((articles.coup_burn, p.burnt), (articles.face_up, p.face_up), (articles.error, p.corrected))
            law += self._cited(article for article, applies in (*said, (articles.demo, round_.demo)) if applies)
        outcome = {"hands": {"player": player, "banker": banker}, **end.facts, "natural": max(first) >= 8}
        if p.face_up:
            outcome["face_up"] = p.face_up
        return resolved(
            known,
            self.terms,
            outcome=outcome,
            winners=end.winners,
            pushes=end.pushes,
            jackpots=() if round_.demo else self.awards(p.cards, known, frame),
            announcements=end.announcements,
            law=law,
        )

    def _worked_out(self, *end: Any) -> Outcome:
        """`end`: the fields of a Coup."""
        coup = Coup(*end)
        paid = self.paid(coup)
        said = [self.calls[name] for name in (coup.winner, *paid.called)]
        announcements = {
            language: mark.join(words[place] for words in said).format(coup.player, coup.banker)
            for place, (language, mark) in enumerate((("pt", ", "), ("zh-Hant", "，"), ("en", ", ")))
        }
        facts = {
            "totals": {"player": coup.player, "banker": coup.banker},
            "winner": coup.winner,
            "player_pair": coup.player_pair,
            "banker_pair": coup.banker_pair,
            **paid.facts,
        }
        law = self._cited(dict.fromkeys(paid.articles))
        return Outcome(facts, paid.wins, paid.pushes, announcements, law)

    # ---- public views

    def _lie(self, cards: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Both hands as everybody sees them. Seats that handle cards show them once each side has two."""
        handled = self.house.handled and len(cards) < 4
        return hands((UNKNOWN,) * len(cards) if handled else cards)

    def _shown(self, cards: tuple[str, ...]) -> dict[str, Any]:
        player, banker = self._lie(cards)
        totals = {} if UNKNOWN in player else {"player": points(player), "banker": points(banker)}
        return {"hands": {"player": player, "banker": banker}, "totals": totals}

    def _highest(self, round_: Round, side: str) -> int:
        """The seat with the highest bet on a side; 0 for none."""
        bets = [one for one in round_.wagers if one.bet == side]
        if self.house.ties_by == "lowest_seat":
            bets.sort(key=lambda one: one.seat)
        return max(bets, key=lambda one: one.amount).seat if bets else 0


def _with_coup(p: Position, coup: Position) -> Position:
    """The shoe of `p` with the coup of `coup`."""
    return replace(p, **{name: getattr(coup, name) for name in COUP_FIELDS})


def _of_another(p: Position, frame: Frame[Position], before: Frame[Position] | None, laid: tuple[str, ...]) -> bool:
    """Whether entered hands may be meant for another coup: they share no card with this one, or more with the one
    before.

    If this coup already waits for a person they are its own, unless they equal the hands of the coup before. If this
    coup has no cards yet, the cards of the coup before decide.
    """
    known = before.position if before is not None else None
    others = known.cards if known is not None else ()
    if laid == others or frame.round.suspended:
        return laid == others
    new = beyond(laid, p.cards)
    shared = len(laid) - len(beyond(laid, others))
    if before is not None and known is not None and not p.cards:
        if not known.told:  # no shoe reports here: one card in common may be chance, more than half is not
            return 2 * shared > len(laid)
        if any(isinstance(fact.event, RoundPaid) for fact in (*before.after, *frame.facts)):
            return shared > 0
    return len(new) == len(laid) or len(laid) - shared < len(new)
