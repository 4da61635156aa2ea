"""The keys of the dealer's page: the keys of a game, their places, and which are useful now. Pure.

`pages/dealer.py` draws them. A key that is useless now is shown as disabled with its reason. The state of the table
comes from the rules and may be late, so the console still accepts every key of the game.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from daemon.console.games import GAMES, family_of
from daemon.console.games.chemin_de_fer import FAULTS
from protocols.contract.facts import (
    BaccaratFacts,
    BlackjackFacts,
    CardFacts,
    CheminFacts,
    Due,
    FantanFacts,
    RouletteFacts,
    RoundFacts,
    StudPokerFacts,
    UnbankedPokerFacts,
    of_kind,
)
from protocols.fdl.console import ACTIONS

__all__ = [
    "BETTING",
    "GRIDS",
    "KEYS",
    "PLAYING",
    "Key",
    "Moment",
    "Way",
    "group_of",
    "hand_names",
    "keys_of",
    "live_actions",
    "live_keys",
    "missing_hands",
    "next_key",
    "next_step",
    "seats_taken",
    "turn",
    "ways_out",
]

Group: TypeAlias = Literal["round", "game", "bets", "rare", "grave"]


class Key(Struct, frozen=True):
    """One key of the page. `fields` are filled in; `sure`: it needs a confirmation; `supervisor`: for supervisors only.

    `group`: its place on the page. `grave`: its effect cannot be undone.
    """

    name: str
    fields: tuple[str, ...] = ()
    sure: bool = False
    supervisor: bool = False
    group: Group = "rare"

    @property
    def grave(self) -> bool:
        """Whether it is drawn as dangerous."""
        return self.group == "grave"


KEYS: Final[Mapping[str, Key]] = {
    key.name: key
    for key in (
        Key("bets_opened", group="round"),
        Key("bell", group="round"),
        Key("paid", group="round"),
        Key("void", ("reason", "round"), sure=True, group="grave"),
        Key("new_shoe", ("decks",), sure=True),
        Key("cut_card"),
        Key("demo", sure=True),
        Key("dealer_relieved", sure=True),
        Key("table_closed", sure=True, group="grave"),
        Key("dice_covered", group="game"),
        Key("dice_uncovered", group="game"),
        Key("dice", ("faces", "stacked", "leaning"), group="game"),
        Key("throw", ("faces", "throw_reason"), group="game"),
        Key("dice_disturbed", sure=True, group="grave"),
        Key("dice_replaced", sure=True),
        Key("dice_seized", sure=True, group="grave"),
        Key("buttons_separated", group="game"),
        Key("buttons", ("count", "fragments"), group="game"),
        Key("ball_launched", ("ball", "rotor"), group="game"),
        Key("ball", ("pocket",), group="game"),
        Key("ball_replaced", ("pocket_or_none",), sure=True, group="grave"),
        Key("ball_changed", sure=True),
        Key("seat_opened", ("seat",), group="game"),
        Key("seat_closed", ("seat",), group="game"),
        Key("action", ("seat", "hand", "action", "amount"), group="game"),
        Key("hand_passed", ("seat",), group="game"),
        Key("bet", ("seat", "bet", "amount"), group="bets"),
        Key("bet_back", ("seat", "bet", "amount"), group="bets"),
        Key("card_exposed", ("owner", "card"), group="game"),
        Key("card_damaged", ("card",)),
        Key("showdown", ("hands",), group="game"),
        Key("correct", ("hands", "round"), sure=True, supervisor=True),
        Key("fold_reversed", ("seat",), sure=True, supervisor=True),
        Key("approve_machine", sure=True, supervisor=True, group="game"),
        Key("jackpot_won", ("level", "seat_or_none", "amount"), sure=True),
        Key("jackpot_paid", ("level", "seat_or_none", "amount"), sure=True, supervisor=True),
    )
}
GRIDS: Final = frozenset({"blackjack", "chemin_de_fer", "poker", "stud_poker"})
"""Games whose players decide: seats by actions."""

BETTING: Final = frozenset({"covered", "betting"})
PLAYING: Final = frozenset({"closed", "uncovered", "running", "dealing", "deciding", "showdown"})
_RESULTS: Final = frozenset({"dice", "throw", "buttons", "ball"})
_CARDS: Final = frozenset({"baccarat", "blackjack", "chemin_de_fer", "poker", "stud_poker"})
_THROWN: Final = frozenset({"craps", "french_bank"})
_UNCERTAIN: Final = frozenset({"seats_uncertain", "no_seat"})
"""Reasons of blackjack: the playing seats are unknown."""
_VOID_ONLY: Final = frozenset(
    {"stacks_unknown", "too_few_players", "hand_incomplete", "pot_unbalanced", "no_hand_left", "packet_own_cards"}
)
"""Reasons of poker without a bank: entered cards cannot correct the hand."""
_COUP_VOID_ONLY: Final = frozenset(
    {"bank_missing", "cover_missing", "too_few_players", "pot_unbalanced", "stakes_unknown", "last_coup"}
)
"""The same of chemin de fer."""
BETWEEN_HANDS: Final = ("stack", "rest", "return")
_OUT_OF_TURN: Final = ("fold", "check", "call", "bet", "raise", "all_in", "show", "dead", "absent", "skipped")
"""Entries that are possible for any seat of a hand; the rules decide by which article they count."""
_BLIND: Final = ("blind_raise", "blind_reraise")


def keys_of(ruleset: str) -> tuple[str, ...]:
    """The keys of a game; of an unknown one, all."""
    return GAMES[ruleset].keys if ruleset in GAMES else tuple(KEYS)


def group_of(key: Key, ruleset: str) -> Group:
    """A key's place: `card_exposed` is rare at blackjack and poker; at stud poker it enters the dealer's open card."""
    return "rare" if key.name == "card_exposed" and family_of(ruleset) in ("blackjack", "poker") else key.group


class Moment(Struct, frozen=True):
    """The present state of the table: `phase` is "unknown" while the rules are offline.

    `ended`: the displayed round has a result, so a doubt concerns that result. `paid`: the last result was paid.
    """

    phase: str
    detail: RoundFacts = RoundFacts()
    ended: bool = False
    paid: bool = False


class Way(Struct, frozen=True):
    """One way to end a doubt: the key, who presses it, and an advice ("" none)."""

    key: str
    supervisor: bool = False
    advice: str = ""


def live_keys(ruleset: str, now: Moment) -> dict[str, str]:
    """The keys of the game, each with "" if it is useful now, otherwise the code of the reason."""
    game = family_of(ruleset)
    keys = keys_of(ruleset)
    if not game or now.phase in ("unknown", "-"):  # the page works with the edge alone
        return {key: "no_showdown" if key == "showdown" else "" for key in keys}
    return {key: _why_not(key, game, now) for key in keys}


def _why_not(key: str, game: str, now: Moment) -> str:  # noqa: C901 - a case for each key
    phase = now.phase
    match key:
        case "bets_opened":
            return _opening(now)
        case "bell":
            return _bell(now)
        case "paid":
            return _payment(game, now)
        case "void":
            open_ = phase in BETTING | PLAYING | {"suspended", "paying", "resolved"} or _spun(game, now)
            return "" if open_ and not (phase in ("resolved", "idle") and now.paid) else "no_round"
        case "bet" | "bet_back":
            return _wager(key, game, now)
        case "action":
            return "" if any(live_actions(game, now).values()) else "no_decision"
        case "showdown":
            return "" if missing_hands(now) else "no_showdown"
        case "buttons_separated":
            return _heap(now)
        case "ball_launched" | "ball_changed":
            waits = {"suspended": "round_waits"} if key == "ball_launched" else {}
            return ({"running": "ball_runs"} | waits).get(phase, "")
        case "card_exposed" | "correct":
            return "" if phase in PLAYING | {"suspended", "resolved"} else "no_cards"
        case "approve_machine":
            return "" if phase == "suspended" else "no_approval"
        case "new_shoe" | "table_closed":
            return "round_is_open" if phase in PLAYING else ""
        case "demo":
            return "round_is_open" if phase in BETTING | PLAYING else "round_waits" if phase == "suspended" else ""
        case "dice_covered" | "dice_uncovered" | "dice_disturbed":
            return _dice(key, game, phase)
        case _ if key in _RESULTS:
            return _outcome(game, now)
        case _:
            return ""


def _dice(key: str, game: str, phase: str) -> str:
    before_bell = phase in BETTING and game != "french_bank"
    match key:
        case "dice_covered":
            return "result_first" if phase in PLAYING else ""
        case "dice_uncovered":
            return "bell_first" if before_bell else ""
        case _:
            return "no_round" if phase == "idle" else "bell_first" if before_bell else ""


def _opening(now: Moment) -> str:
    if now.phase == "betting":
        return "bets_are_open"
    if now.phase in PLAYING:
        return "round_is_open"
    return {"suspended": "round_waits", "ended": "shoe_first"}.get(now.phase, "")


def _bell(now: Moment) -> str:
    if now.phase == "betting" or (now.phase == "running" and not now.detail.say):
        return ""
    if now.phase in PLAYING:
        return "bell_over"
    return "round_waits" if now.phase == "suspended" else "bets_first"


def _payment(game: str, now: Moment) -> str:
    if now.phase == "paying" or (now.phase == "suspended" and now.ended):
        return ""
    if now.phase == "resolved" or _spun(game, now):
        return "paid_already" if now.paid else ""
    if now.phase == "idle" and now.paid:
        return "paid_already"
    return "round_waits" if now.phase == "suspended" else "result_first"


def _spun(game: str, now: Moment) -> bool:
    """Whether the ball has landed: then a roulette is idle."""
    return game == "roulette" and now.phase == "idle" and bool(of_kind(RouletteFacts, now.detail).last_pocket)


def _wager(key: str, game: str, now: Moment) -> str:
    """The reason against a bet; blackjack and stud poker take some after the bell, craps returns odds until the
    throw.
    """
    after = now.phase == "dealing" and game in GRIDS
    odds = now.phase == "closed" and game == "craps" and key == "bet_back"
    running = now.phase == "running" and not now.detail.say
    if now.phase in BETTING or after or odds or running:
        return ""
    if now.phase in PLAYING:
        return "bell_over"
    return "round_waits" if now.phase == "suspended" else "bets_first"


def _heap(now: Moment) -> str:
    if now.phase in BETTING:
        return "heap_is_set" if of_kind(FantanFacts, now.detail).separated else ""
    return {"closed": "count_first", "suspended": "round_waits"}.get(now.phase, "")


def _outcome(game: str, now: Moment) -> str:
    """The reason against a result; until the payment it may be entered again, to correct a wrong one."""
    phase = now.phase
    if phase in PLAYING | {"paying", "suspended"} or (_spun(game, now) and not now.paid):
        return ""
    if phase == "betting":
        return "" if game in _THROWN else "launch_first" if game == "roulette" else "bell_first"
    return "bell_first" if phase == "covered" else "bets_first"


def seats_taken(now: Moment) -> tuple[int, ...]:
    """The seats that take part, as far as the rules report them."""
    match now.detail:
        case BlackjackFacts(seats=seats):
            return tuple(sorted(seats))
        case StudPokerFacts(antes=antes, players=players, seats=tuple() as seats):
            return tuple(sorted({*seats, *antes, *players}))
        case CheminFacts(seated=seated):
            return tuple(seated)
        case UnbankedPokerFacts(stacks=stacks):
            return tuple(int(name.removeprefix("seat_")) for name in stacks)
        case _:
            return ()


def live_actions(game: str, now: Moment) -> dict[int, tuple[str, ...]]:
    """The possible decisions by seat; 0 means every seat."""
    stud, blackjack = of_kind(StudPokerFacts, now.detail), of_kind(BlackjackFacts, now.detail)
    every = tuple(ACTIONS.values())
    if game == "blackjack" and now.phase == "suspended":  # a decision may be entered again where cards lie
        return {
            int(name.partition(".")[0]): every
            for name, cards in blackjack.hands.items()
            if name[:1].isdecimal() and cards
        }
    if now.phase in ("suspended", "unknown", "-") or not game:
        return {0: every}
    if game == "poker":
        return _poker_actions(now)
    if game == "chemin_de_fer":
        return _chemin_actions(now)
    if game == "stud_poker":
        if now.phase == "betting":
            return {0: ("ante",)}
        asked = stud.undecided or (stud.players if now.phase == "dealing" else ())
        decided = {*stud.raised, *stud.folded}
        return {seat: ("raise", "fold") for seat in asked if seat not in decided}
    if game != "blackjack" or now.phase != "dealing":
        return {}
    found: dict[int, tuple[str, ...]] = {}
    if any(card.startswith("A") for card in blackjack.hands.get("dealer", ())[:1]):
        seats = {int(name.partition(".")[0]) for name in blackjack.hands if name[:1].isdecimal()}
        found = {seat: ("insurance",) for seat in seats if seat not in blackjack.insured}
    due = blackjack.due
    if due is not None and due.kind == "decision":
        found[due.seat] = tuple(dict.fromkeys((*due.actions, *found.get(due.seat, ()))))
    return found


def _poker_actions(now: Moment) -> dict[int, tuple[str, ...]]:
    """The entries by seat: between two hands for any seat; in a hand for its seats, and those of others meanwhile."""
    poker = of_kind(UnbankedPokerFacts, now.detail)
    if now.phase not in BETTING | PLAYING:
        return {0: BETWEEN_HANDS}
    blind = () if poker.board else _BLIND
    found = {
        seat: BETWEEN_HANDS if seat not in poker.players else () if seat in poker.folded else (*_OUT_OF_TURN, *blind)
        for seat in seats_taken(now)
    }
    due = poker.due
    if due is not None and due.seat:
        found[due.seat] = tuple(dict.fromkeys((*due.actions, *found.get(due.seat, ()))))
    return found


def _chemin_actions(now: Moment) -> dict[int, tuple[str, ...]]:
    """The entries by seat: in a coup decisions and faults of punter and banker; before it bank, bids and bancos."""
    coup = of_kind(CheminFacts, now.detail)
    banker, offer, betting = coup.banker, coup.offer, now.phase in BETTING
    if now.phase in PLAYING:
        found: dict[int, tuple[str, ...]] = {seat: ("looks", "cards_to") for seat in coup.seated if seat != banker}
        found[banker] = ("by_table", *FAULTS)
        for seat in (banker, coup.punter):
            found[seat] = (*found.get(seat, ()), "discarded")
    else:
        own: tuple[str, ...] = ()
        others: tuple[str, ...]
        if offer is not None:
            others = ("bid", "bid_half") if offer.auction else ("take", "auction")
        else:
            own = ("bank", "pass", "outside", "absent", *coup.may)
            others = ("banco", "banco_with_table", "banco_suivi", "association") if betting else ("association",)
        found = {seat: (*(own if seat == banker else ()), *others, "moved") for seat in coup.seated}
        if not banker or not coup.bank:
            found = {seat: tuple(dict.fromkeys(("bank", *words))) for seat, words in found.items()}
    due = coup.due
    if due is not None and due.seat:
        found[due.seat] = tuple(dict.fromkeys((*due.actions, *found.get(due.seat, ()))))
    return found


def turn(now: Moment) -> int:
    """The seat that is asked at a table of poker or chemin de fer; 0: none."""
    due = of_kind(UnbankedPokerFacts, now.detail).due or of_kind(CheminFacts, now.detail).due
    return due.seat if due is not None and now.phase in BETTING | PLAYING else 0


def _due(detail: RoundFacts) -> Due | None:
    match detail:
        case BlackjackFacts(due=due) | CheminFacts(due=due) | UnbankedPokerFacts(due=due):
            return due
        case _:
            return None


_NEXT_KEYS: Final[Mapping[str, str]] = {
    "bell": "bell",
    "launch": "ball_launched",
    "open": "bets_opened",
    "pay": "paid",
    "shoe": "new_shoe",
}


def next_step(ruleset: str, now: Moment) -> tuple[str, tuple[str, ...]]:
    """The next expected step, as a code and its hands; "" where a doubt is shown instead."""
    due, next_hand = _due(now.detail), of_kind(BaccaratFacts, now.detail).next
    stud = of_kind(StudPokerFacts, now.detail)
    if due is not None and due.kind and now.phase != "suspended":
        if due.hand in ("burn", "own"):
            return "burn" if due.hand == "burn" else "deal", ()
        return due.kind, (_hand_name(due.hand),)
    game = family_of(ruleset)
    match now.phase:
        case "burning":
            return "burn", ()
        case "closed" | "dealing" if next_hand:
            return ("burn", ()) if next_hand == "burn" else ("card", (next_hand,))
        case "dealing":
            return "deal", ()
        case "deciding" if stud.undecided:
            return "decision", tuple(f"seat_{seat}" for seat in stud.undecided)
        case "showdown" if stud.missing:
            return "hands", stud.missing
        case "betting":
            return "bell", ()
        case "closed" | "uncovered" | "running" | "showdown":
            return ("launch" if game == "roulette" and now.phase == "closed" else "result"), ()
        case "paying" | "resolved":
            return ("open" if now.paid else "pay"), ()
        case "idle" | "covered":
            return ("pay" if _spun(game, now) and not now.paid else "open"), ()
        case "ended":
            return "shoe", ()
        case _:
            return "", ()


def next_key(ruleset: str, now: Moment) -> str:
    """The key that the table waits for; "" where it waits for something else."""
    key = _NEXT_KEYS.get(next_step(ruleset, now)[0], "") if now.phase != "unknown" else ""
    return "" if live_keys(ruleset, now).get(key, "no key") else key


def hand_names(ruleset: str, now: Moment) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The hands that a correction may name, with their open cards; hands with missing cards come first."""
    game, stud = family_of(ruleset), of_kind(StudPokerFacts, now.detail)
    hands = {_hand_name(name): _face_up(cards) for name, cards in of_kind(CardFacts, now.detail).hands.items()}
    if game in ("baccarat", "chemin_de_fer"):
        names: Iterable[str] = ("player", "banker")
    elif game == "stud_poker":
        raised = stud.raised or stud.players
        names = (*stud.missing, "dealer", *(f"seat_{seat}" for seat in raised))
    elif game == "poker":
        poker = of_kind(UnbankedPokerFacts, now.detail)
        hands = {"board": poker.board, **poker.hands}
        names = ("board", *(f"seat_{seat}" for seat in poker.players if seat not in poker.folded))
    else:
        names = ("dealer", *hands, *(f"seat_{seat}" for seat in seats_taken(now)))
    ordered = dict.fromkeys(map(_hand_name, names))
    return tuple((name, hands.get(name, ())) for name in ordered)


def missing_hands(now: Moment) -> tuple[str, ...]:
    """The hands that the dealer enters at a showdown: those that no shoe reported."""
    return of_kind(StudPokerFacts, now.detail).missing if now.phase == "showdown" else ()


def _face_up(cards: Iterable[str]) -> tuple[str, ...]:
    return tuple(card for card in cards if len(card) > 1 and card[-1] in "SHDC")


def _hand_name(name: str) -> str:
    """ "3.2" is seat_3_2 in a correction."""
    seat, _, number = name.partition(".")
    if not seat.isdecimal():
        return name
    return f"seat_{seat}" if number in ("", "1") else f"seat_{seat}_{number}"


def ways_out(ruleset: str, now: Moment) -> tuple[Way, ...]:
    """The ways to end a suspended round, the best one first."""
    if now.phase != "suspended":
        return ()
    game = family_of(ruleset)
    reason = now.detail.reason.code if now.detail.reason is not None else ""
    if game == "slot":
        return (Way("approve_machine", supervisor=True, advice="approve_machine"), Way("void"))
    if game not in _CARDS:
        if not now.ended:
            return (Way("void"),)
        again = tuple(Way(key, advice="enter_again") for key in keys_of(ruleset) if key in _RESULTS)
        paid = Way("paid", advice="" if game in _THROWN else "first_stands")
        return (*(again if GAMES[ruleset].again_stands else ()), paid, Way("void"))
    if game == "blackjack" and reason in _UNCERTAIN:
        return (Way("name_seats", supervisor=True, advice="name_seats"), Way("void", advice="void_this_only"))
    if game == "poker" and reason in _VOID_ONLY:
        return (Way("void", advice="stacks_again"),)
    if game == "chemin_de_fer" and reason in _COUP_VOID_ONLY:
        return (Way("void", advice="bank_again"),)
    return (Way("correct", supervisor=True), Way("void"))
