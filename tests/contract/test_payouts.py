"""The order in which the dealer collects and pays."""

import random

import corpus
import msgspec
import pytest

from protocols.contract.payouts import payout_order
from protocols.contract.reasons import say
from protocols.contract.results import Result, Settlement, Void, decode_result
from rules import RULESETS
from rules.engine.ruleset import options_from
from rules.macau.roulette import FAMILIES

PAID = ["dozen:1", "sector_a", "red", "line:1-2-3-4-5-6", "street:1-2-3", "corner:1-2-4-5", "split:1-2", "straight:1"]


def settled(*bets: tuple[str, int]) -> tuple[Settlement, ...]:
    return tuple(Settlement(seat, bet, 10, returned) for seat, (bet, returned) in enumerate(bets, 1))


@pytest.mark.parametrize(("edition", "law"), [("2004", "Despacho 60/2004"), ("2003", "Despacho 30/2003")])
def test_macau_roulette_collects_what_lost_and_pays_in_the_order_of_article_5(edition: str, law: str) -> None:
    laid = [(bet, 20) for bet in PAID] + [("column:2", 0), ("straight:2", 0), ("black", 0)]
    random.Random(5).shuffle(laid)
    order = payout_order(Result("r", "macau.roulette", edition, settlements=settled(*laid)))
    lost = [bet for bet, returned in laid if not returned]
    assert [one.bet for one in order.settlements] == [*lost, *PAID]
    assert order.law == (f"{law} art. 5(1)",)


def test_every_family_of_macau_roulette_has_its_place() -> None:
    every = settled(*((family, 20) for family in reversed(FAMILIES)), ("unknown", 20))
    order = payout_order(Result("r", "macau.roulette", "2004", settlements=every))
    assert {one.bet for one in order.settlements} == {*FAMILIES, "unknown"}
    assert order.settlements[-2:] == (every[0], every[-1])


@pytest.mark.parametrize("name", sorted(RULESETS))
def test_no_settlement_is_lost_and_those_of_printed_orders_begin_with_what_lost(name: str) -> None:
    ruleset = RULESETS[name](options_from(RULESETS[name], {}))
    seen = 0
    for line, _ in corpus.table(ruleset, name, {}, 300):
        for said in msgspec.json.decode(line)["said"]:
            if said["type"] in ("resolved", "voided"):
                result = decode_result(msgspec.json.encode(said["result"]))
                order = payout_order(result)
                seen += len(order.settlements)
                assert sorted(order.settlements, key=repr) == sorted(result.settlements, key=repr)
                # Half of a bet on the line of the French bank comes back; chemin de fer goes by seats.
                if order.law and name not in ("angola.french-bank", "angola.chemin-de-fer"):
                    won = [bool(one.returned) for one in order.settlements]
                    assert won == sorted(won)
    assert seen


def test_a_void_round_has_no_order() -> None:
    back = settled(("red", 10), ("column:1", 10))
    void = Void(say("declared"), "returned")
    assert payout_order(Result("r", "macau.roulette", "2004", void=void, settlements=back)).settlements == back
