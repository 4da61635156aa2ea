"""Coups of chemin de fer against a second settlement that was written from the text alone.

The dealer of `simulators/tables/chemin.py` counts cards and chips by himself; here he and the ruleset play the same
coups, with false draws, changed words, partners and bets on the line.
"""

import random

from chemin_hands import CheminTable
from helpers import at_length

from protocols.contract.events import BetsClosed, BetsOpened
from protocols.contract.results import Result
from rules.engine.money import settle
from rules.engine.ruleset import Wager
from rules.games.cards import DECK
from simulators.tables.chemin import Chips, brings, by_the_text, higher, kept_of, total

COUPS = at_length(1_000, 100_000)
PER_TABLE = 50
CHIP = 10


def test_coups_are_settled_as_the_text_has_them() -> None:
    rng, played, put_right = random.Random("chemin de fer"), 0, 0
    while played < COUPS:
        per_mille = rng.choice((0, 30, 50))
        table = CheminTable(percentage=per_mille, smallest_chip=CHIP)
        for _ in range(PER_TABLE):
            played += 1
            put_right += one_coup(table, rng, per_mille)
    assert put_right > COUPS // 10


def as_printed(result: Result) -> tuple[tuple[int, int, str, int, int], ...]:
    """What the wins and ties of the result bring back for each stake."""
    laid = [Wager(one.seat, one.bet, one.stake, one.hand) for one in result.settlements]
    found = settle(laid, result.winners, result.pushes)
    return tuple(sorted((one.seat, one.hand, one.bet, one.stake, one.returned) for one in found))


def one_coup(table: CheminTable, rng: random.Random, per_mille: int) -> bool:
    """A coup, and whether a draw was put right."""
    table.tell(BetsOpened())
    banker = table.detail["banker"]
    if not table.detail["bank"]:
        table.acts(f"{banker} bank {rng.choice((1000, 1050, 3001))}")
        if rng.random() < 0.3:
            table.acts(f"{banker % 5 + 1} association")
    partner, bank = table.bank.partner, table.detail["bank"]
    punters = [seat for seat in range(1, 6) if seat not in (banker, partner)]
    banco, bets = rng.random() < 0.3, dict[tuple[int, str], int]()
    if banco:
        alone = rng.choice(punters)
        table.acts(f"{alone} banco")
        bets[alone, "cover"] = bank
    for seat in punters if not banco else ():
        bet, amount = rng.choice(("cover", "half")), 100 * rng.randint(1, 3)
        if sum(chips // (2 if one[1] == "half" else 1) for one, chips in bets.items()) + amount <= bank:
            bets[seat, bet] = amount * (2 if bet == "half" else 1)
            table.covers(f"{seat} {bets[seat, bet]} {bet}")
    chips = Chips(banker, partner, bank, bets)
    table.tell(BetsClosed())
    cards = [rng.choice(DECK) for _ in range(4)]
    table.cards(" ".join(cards))
    mine, his = cards[0:4:2], cards[1:4:2]
    first = "show" if total(mine) > 7 and rng.random() < 0.9 else rng.choice(("draw", "stand"))
    words = [first] if first == "show" or rng.random() < 0.8 else [first, {"draw": "stand", "stand": "draw"}[first]]
    table.says(*(f"player {word}" for word in words), "banker show")
    likes, gives = None, ""
    while table.view.phase != "resolved":
        due = table.detail["due"]
        if due["kind"] == "card":
            cards.append(rng.choice(DECK))
            table.cards(cards[-1])
            continue
        word = rng.choice(due["actions"])
        if word in ("give", "refuse"):
            gives = word
        elif word in ("draw", "stand"):
            likes = word == "draw"
        table.acts(f"{due['seat']} {word}")
    final, given = words[-1], len(words) > 1 and total(mine) != 5 and total(his) > 0
    if len(words) > 1 and total(mine) == 5:
        final = words[0]
    elif given and gives:
        final = "draw" if gives == "give" else "stand"
    hands = by_the_text(cards, final, likes, banco=banco, given=given)
    winner = higher(*hands, shown=final == "show")
    outcome = table.result.outcome
    assert (outcome["hands"], outcome["winner"]) == ({"player": hands[0], "banker": hands[1]}, winner)
    settled = tuple(sorted((one.seat, one.hand, one.bet, one.stake, one.returned) for one in table.result.settlements))
    assert settled == brings(chips, winner, per_mille, CHIP)
    assert settled == as_printed(table.result)
    if winner == "banker":
        assert table.bank.amount == bank + chips.covered() - kept_of(chips, winner, per_mille, CHIP)
    elif winner == "tie":
        assert table.bank.amount == bank
    else:
        assert table.bank.banker == banker % 5 + 1
    return any(one.code == "false_draw" for one in table.result.irregularities)
