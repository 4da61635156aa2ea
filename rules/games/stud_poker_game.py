"""Stud poker against the dealer by a text: the offered bets, the view, the winning hands, and the prizes.

The base of `rules/macau/stud_poker.py` and `rules/angola/stud_poker.py`. A text gives its rulings, articles, prizes and
words as data, and the value of a hand; the life of a round is in `rules/games/stud_poker_round.py`.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from protocols.contract.facts import RoundFacts, StudPokerFacts
from rules.engine.facts import Frame, Table
from rules.engine.rounds import Round, resolved, without_bets
from rules.engine.ruleset import Award, Bet, Push, Result, View, Win
from rules.games.poker import CATEGORIES, HEIGHT, packed, strength
from rules.games.stud_poker import DEALER, Compared, Deal, Hands, Position, compare, stakes, visible
from rules.games.stud_poker_round import StudPokerRounds

POOL: Final = "progressive"
# A hand's value is its strength, shifted left by these bits, in which a text may rank hands of equal strength.
VALUE_BITS: Final = 2
OPENING: Final = packed("high_card", (HEIGHT["A"], HEIGHT["K"])) << VALUE_BITS
"""The lowest hand with which the dealer opens."""


def combination(value: int) -> str:
    """The category of a hand's value."""
    return CATEGORIES[value >> 20 + VALUE_BITS]


class Raise(Struct, frozen=True):
    """The prize of a raise with a combination, and its article."""

    pays: int
    article: str


class Prize(Struct, frozen=True):
    """The jackpot prize of a combination. `after`: the combination that is paid before it. `shared`: all seats with the
    combination share one prize.
    """

    pays: Literal["pool", "fixed", "larger_of_fixed_and_share"]
    article: str
    share: str = ""
    after: str = ""
    shared: bool = False


class Said(Struct, frozen=True):
    """The croupier's calls in one language; `{}` is a combination, or the seat and its combination."""

    dealer: str
    wins: str
    loses: str
    mark: str
    folded: str
    not_opened: str
    calls: Mapping[str, str]
    ties: str = ""


CHINESE: Final = Said(
    dealer="莊家：{}",
    wins="{}門贏，{}",
    loses="{}門輸",
    ties="{}門和",
    mark="；",
    folded="全部不加注",
    not_opened="莊家不開牌，原注一賠一，加注退回",
    calls={
        "royal_flush": "黃袍麒麟",
        "straight_flush": "同花順",
        "four_of_a_kind": "四條",
        "full_house": "夫盧",
        "flush": "同花",
        "straight": "順",
        "three_of_a_kind": "三條",
        "two_pairs": "兩對",
        "one_pair": "一對",
        "high_card": "五張散牌",
    },
)
ENGLISH: Final = Said(
    dealer="Dealer: {}",
    wins="seat {} wins with {}",
    loses="seat {} loses",
    ties="seat {} ties",
    mark="; ",
    folded="All hands folded",
    not_opened="The dealer does not open: antes are paid, raises come back",
    calls={
        "royal_flush": "royal flush",
        "straight_flush": "straight flush",
        "four_of_a_kind": "four of a kind",
        "full_house": "full house",
        "flush": "flush",
        "straight": "straight",
        "three_of_a_kind": "three of a kind",
        "two_pairs": "two pairs",
        "one_pair": "one pair",
        "high_card": "five odd cards",
    },
)


class Articles(Struct, frozen=True):
    """The articles that a result cites. `hands`: by combination. `same_hands`: by the combination that seat and dealer
    both hold. `equal`: for hands that differ only in their suits.
    """

    from_shoe: str
    from_shuffler: str
    exposed: str
    folded: str
    opening: str
    opens: str
    not_opened: str
    loses: str
    equal: str
    hands: Mapping[str, str]
    same_hands: Mapping[str, str] = {}
    wins: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    forfeited: str = ""


class Text(Struct, frozen=True):
    """One text of the law: its prizes, articles and words. `smallest_first`: the smallest jackpot is paid first."""

    cite: str
    raises: Mapping[str, Raise]
    jackpot: Mapping[str, Prize]
    articles: Articles
    words: Mapping[str, Said]
    smallest_first: bool = False


class Showdown(Struct, frozen=True):
    """A showdown: its outcome, wins, pushes, jackpots, calls and articles."""

    outcome: dict[str, Any]
    winners: tuple[Win, ...]
    pushes: tuple[Push, ...]
    awards: tuple[Award, ...]
    announcements: dict[str, str]
    law: tuple[str, ...]


class StudPokerGame(StudPokerRounds):
    """Stud poker without the data of a text; the base of each text's ruleset."""

    Facts: ClassVar[type[RoundFacts]] = StudPokerFacts
    text: ClassVar[Text]

    paid_bets: tuple[Bet, ...]
    """The bets offered, in the order of the text."""
    jackpot_pays: Collection[str]
    """The combinations that the jackpot is paid for."""
    keeps_jackpot: bool = False
    """Whether a folded hand can still win the jackpot."""

    @abstractmethod
    def value(self, cards: tuple[str, ...]) -> int:
        """The value of a hand in the text's order: its strength, and two bits that distinguish equal hands."""

    def raise_pays(self, deal: Deal, round_: Round, seat: int, name: str) -> Win:
        """The prize of the raise of `seat` with the combination `name`."""
        return Win("raise", str(self.text.raises[name].pays), seat=seat)

    def largest_raise(self) -> int:
        """The largest prize of a raise."""
        return max(one.pays for one in self.text.raises.values())

    def best(self) -> Mapping[str, Fraction]:
        """The largest prize of each bet. That of the ante includes the raise: twice the ante, laid by the decision."""
        most = self.largest_raise()
        return {"ante": Fraction(2 + 2 * (1 + most) - 1), "raise": Fraction(most)}

    def capped(self, deal: Deal, round_: Round, winners: tuple[Win, ...]) -> tuple[Win, ...]:
        """The prizes of a round after the limit on their sum, if the house has one."""
        return winners

    def bets(self) -> tuple[Bet, ...]:
        """The bets offered."""
        return self.paid_bets

    def view(self, state: Table[Position]) -> View:
        """Phase: idle, betting, dealing, deciding, showdown, suspended, resolved. Face-down cards are left out."""
        deal, frame, seats = state.position.deal, state.open, state.position.seats
        if deal is None:
            return View("", "idle", {"seats": seats})
        if frame is None:
            shown = self._showdown(deal, state.last.round if state.last else Round(""), deal.known())
            return View(deal.id, "resolved", {**shown.outcome, "say": shown.announcements})
        round_, phase = frame.round, deal.phase
        if phase == "betting":
            return View(round_.id, "betting", {"seats": seats, "antes": deal.antes(round_)})
        detail: dict[str, Any] = {
            "players": deal.players,
            "raised": deal.raised,
            "folded": deal.folded,
            "dealt": len(deal.cards) or deal.packets,
            **visible(deal),
        }
        if round_.suspended:
            return View(round_.id, "suspended", {**detail, "reason": round_.suspended})
        if phase == "deciding":
            undecided = tuple(seat for seat in deal.players if seat not in (*deal.raised, *deal.folded))
            return View(round_.id, "deciding", {**detail, "undecided": undecided})
        if phase == "showdown":
            return View(round_.id, "showdown", {**detail, "missing": self.missing(deal, round_, deal.known())})
        return View(round_.id, "dealing", detail)

    def _bettors(self, deal: Deal, round_: Round) -> tuple[int, ...] | None:
        """The seats with a bet on the jackpot; None where the bets are not, or not completely, reported."""
        if not round_.wagers or deal.in_doubt("amounts", "carried"):
            return None
        return tuple(one.seat for one in round_.wagers if one.bet == "jackpot")

    def missing(self, deal: Deal, round_: Round, hands: Hands) -> tuple[str, ...]:
        """The hands that must be entered before the round can end."""
        needed: list[str] = []
        # After a loss of events any seat may have bet on the jackpot. Where no bets are reported, no hand is required
        # for the jackpot: people enter a hand that wins it.
        anybody = self.jackpot and deal.in_doubt("amounts", "carried")
        bettors = deal.players if anybody else self._bettors(deal, round_) or ()
        if deal.raised:
            dealer = hands.get(DEALER)
            if dealer is None:
                needed.append(DEALER)
            opens = dealer is not None and self.value(dealer) >= OPENING
            needed += [f"seat_{seat}" for seat in deal.raised if opens or seat in bettors]
        if self.keeps_jackpot:
            needed += [f"seat_{seat}" for seat in deal.folded if seat in bettors and seat not in deal.forfeited]
        return tuple(name for name in needed if name not in hands)

    def resolve(self, position: Position, frame: Frame[Position]) -> Result:
        """The result, without settlements where amounts are unknown."""
        deal, round_ = position.deal or Deal(), frame.round
        unsure = "amounts" in deal.doubts
        shown = self._showdown(deal, round_, deal.known())
        laid = () if unsure else stakes(deal, round_)
        known = without_bets(round_) if unsure else round_
        return resolved(
            known if laid == known.wagers else replace(known, wagers=laid),
            self.terms,
            outcome=shown.outcome,
            winners=shown.winners,
            pushes=shown.pushes,
            jackpots=shown.awards,
            announcements=shown.announcements,
            law=shown.law,
        )

    # ---- winning hands

    def _showdown(self, deal: Deal, round_: Round, hands: Hands) -> Showdown:
        """The showdown of these hands."""
        end = compare(deal, hands, self.value, OPENING)
        winners: list[Win] = []
        pushes: list[Push] = []
        for seat in deal.raised:
            hand = f"seat_{seat}"
            match end.fates[hand]:
                case "not_opened":
                    winners.append(Win("ante", "1", seat=seat))
                    pushes.append(Push("raise", seat))
                case "wins":
                    won = self.raise_pays(deal, round_, seat, combination(end.values[hand]))
                    winners += (Win("ante", "1", seat=seat), won)
                case "ties":
                    pushes += (Push("ante", seat), Push("raise", seat))
        awards, holding = self._awards(deal, round_, hands)
        articles = {*_articles(self.text, deal, end)}
        articles.update(self.text.jackpot[award.combination].article for award in awards)
        opened = end.values | {hand: self.value(hands[hand]) for hand in holding if hand not in end.values}
        outcome = {
            "opens": end.opens,
            "hands": {hand: hands[hand] for hand in opened},
            "combinations": {hand: combination(found) for hand, found in opened.items()},
            "seats": dict(sorted(end.fates.items())),
        }
        law = tuple(f"{self.text.cite} art. {article}" for article in sorted(articles, key=_order))
        paid = self.capped(deal, round_, tuple(winners))
        return Showdown(outcome, paid, tuple(pushes), awards, _announced(self.text.words, end, opened), law)

    def _awards(self, deal: Deal, round_: Round, hands: Hands) -> tuple[tuple[Award, ...], tuple[str, ...]]:
        """The jackpots in the order of payment, and the hands that won one, independent of the dealer's hand.

        Where bets on the jackpot are not reported, there is one award for each combination, without seats.
        """
        if not self.jackpot:
            return (), ()
        prizes = self.text.jackpot
        bettors = self._bettors(deal, round_)
        held: list[tuple[int, str]] = []
        for seat in deal.players:
            hand = f"seat_{seat}"
            lost = seat in deal.forfeited or (seat in deal.folded and not self.keeps_jackpot)
            if hand not in hands or lost:
                continue
            name = CATEGORIES[strength(hands[hand]) >> 20]
            if name in self.jackpot_pays and (bettors is None or seat in bettors):
                held.append((seat, name))
        if not held:
            return (), ()
        awards = []
        for name, among in _shares(self.text, held, seated=bettors is not None):
            prize = prizes[name]
            law = f"{self.text.cite} art. {prize.article}"
            awards.append(Award(POOL, name, prize.pays, law, prize.share, among, prize.after))
        known = () if bettors is None else tuple(f"seat_{seat}" for seat, _ in held)
        return tuple(awards), known


def _shares(text: Text, held: list[tuple[int, str]], *, seated: bool) -> list[tuple[str, tuple[int, ...]]]:
    """The prizes of the jackpot with the seats that share each, in the order of payment.

    The order is from the dealer's left, with a combination behind the one that is paid before it; or smallest first.
    """
    if not seated:
        shares: list[tuple[str, tuple[int, ...]]] = [(name, ()) for name in dict.fromkeys(name for _, name in held)]
    else:
        shares = []
        for seat, name in held:
            among = tuple(other for other, held_ in held if held_ == name) if text.jackpot[name].shared else (seat,)
            if (name, among) not in shares:
                shares.append((name, among))
    if text.smallest_first:
        return sorted(shares, key=_height)
    for share in shares[:]:
        behind = [place for place, (name, _) in enumerate(shares) if name == text.jackpot[share[0]].after]
        at = shares.index(share)
        if behind and behind[-1] > at:
            shares.insert(behind[-1], shares.pop(at))
    return shares


def _height(share: tuple[str, tuple[int, ...]]) -> int:
    return CATEGORIES.index(share[0])


def _articles(text: Text, deal: Deal, end: Compared) -> set[str]:
    """The articles that a showdown cites."""
    articles = text.articles
    found = {articles.from_shuffler} if deal.packets else {articles.from_shoe} if deal.cards else set()
    if {hand for hand, _ in deal.exposed} - {f"seat_{seat}" for seat in deal.forfeited}:
        found.add(articles.exposed)
    if deal.forfeited:
        found.add(articles.forfeited)
    if len(deal.folded) > len(deal.forfeited):
        found.add(articles.folded)
    if not deal.raised:
        return found
    dealers = end.values[DEALER]
    held = combination(dealers)
    found |= {articles.opening, articles.opens if end.opens else articles.not_opened, articles.hands[held]}
    for hand, mine in end.values.items():
        if hand == DEALER:
            continue
        name = combination(mine)
        found.add(articles.hands[name])
        match end.fates[hand]:
            case "wins":
                found.update((text.raises[name].article, *articles.wins))
            case "ties":
                found.update(articles.ties)
            case _:
                found.add(articles.loses)
        if name == held and name in articles.same_hands:
            found.add(articles.same_hands[name])
        if mine != dealers and mine >> VALUE_BITS == dealers >> VALUE_BITS:
            found.add(articles.equal)
    return found


@lru_cache(maxsize=256)
def _order(article: str) -> tuple[int, ...]:
    """The sort key of an article: by number, letters alphabetically."""
    parts = article.replace(")", "").split("(")
    return tuple(int(part) if part.isdigit() else ord(part) for part in parts)


def _announced(words: Mapping[str, Said], end: Compared, opened: Mapping[str, int]) -> dict[str, str]:
    """The croupier's calls."""
    dealer = end.values.get(DEALER)
    if dealer is None:
        return {language: said.folded for language, said in words.items()}
    if not end.opens:
        return {language: said.not_opened for language, said in words.items()}
    called = {}
    for language, said in words.items():
        parts = [said.dealer.format(said.calls[combination(dealer)])]
        for hand, fate in sorted(end.fates.items()):
            match fate:
                case "wins":
                    parts.append(said.wins.format(hand[-1], said.calls[combination(opened[hand])]))
                case "ties":
                    parts.append(said.ties.format(hand[-1]))
                case "loses":
                    parts.append(said.loses.format(hand[-1]))
        called[language] = said.mark.join(parts)
    return called
