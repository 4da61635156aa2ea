"""The corpus dealers of Angola's dice games: cussec, and French bank with throws by hand and a recogniser."""

import random
from typing import Final

from corpus_dealing import Dealer, Options, Sample, wagers

from protocols.contract.events import (
    BetsClosed,
    BetsOpened,
    DiceAgitated,
    DiceCovered,
    DiceDisturbed,
    DiceRead,
    DiceReplaced,
    DiceSeized,
    DiceThrown,
    DiceUncovered,
    RoundPaid,
    RoundVoided,
)
from protocols.fdl.console import THROW_REASONS

CUSSEC: Final = ("small", "big", "single:3", "two_dice:1-2", "double:2", "triple:6", "any_triple", "total:9", "even")
BANK: Final = ("aces", "small", "big", "small_line", "big_line", "nothing")
NULLS: Final = tuple(reason for code, reason in THROW_REASONS.items() if 0 < code < 8)


def dice(rng: random.Random) -> tuple[int, ...]:
    """Three dice; a triple now and then."""
    return tuple(rng.choices(range(1, 7), k=3)) if rng.random() < 0.85 else (rng.randint(1, 6),) * 3


def cussec(rng: random.Random, options: Options) -> Dealer:
    """No key opens the bets; a leaning die is read once more by hand."""
    while True:
        if rng.random() < 0.97:
            yield DiceCovered()
        for _ in range(3 if rng.random() < 0.97 else rng.choice((2, 4))):
            yield DiceAgitated("lever" if rng.random() < 0.99 else "electronic", 1)
        if rng.random() < 0.03:
            yield BetsOpened()
        for one in wagers(rng, CUSSEC):
            yield one
        if rng.random() < 0.02:
            yield rng.choice((DiceDisturbed(), DiceReplaced(), DiceUncovered(), DiceCovered()))
        yield BetsClosed()
        yield DiceUncovered()
        faces, odd = dice(rng), rng.random()
        shown = yield DiceRead(faces[:2] if odd < 0.02 else faces, int(0.02 < odd < 0.06), int(0.05 < odd < 0.10))
        if 0.06 <= odd < 0.10:
            shown = yield DiceRead(faces)
        if rng.random() < 0.04:
            yield DiceRead(dice(rng))
        for one in wagers(rng, CUSSEC, 2) if shown["phase"] in ("idle", "suspended") else ():
            yield one
        if shown["phase"] == "suspended" and rng.random() < 0.5:
            yield RoundVoided("")
        if rng.random() < 0.9:
            yield RoundPaid()


def french_bank(rng: random.Random, options: Options) -> Dealer:
    """By hand at most throws, by a recogniser at some, by both at others; a throw in doubt is entered twice."""
    while True:
        shown = yield BetsOpened()
        for one in wagers(rng, BANK):
            shown = yield one
        if rng.random() < 0.8:
            shown = yield BetsClosed()
        for _ in range(rng.choice((6, 30, 30, 30))):
            odd, faces = rng.random(), dice(rng)
            if odd < 0.06:
                shown = yield DiceThrown(
                    faces[: rng.randint(0, 3)], valid=False, reason=rng.choice((*NULLS, "", "late"))
                )
                if rng.random() < 0.7:
                    shown = yield DiceReplaced()
                continue
            if odd < 0.09:
                shown = yield DiceDisturbed()
            elif odd < 0.10:
                yield DiceSeized()
                shown = yield DiceReplaced()
            if rng.random() < 0.12:
                shown = yield DiceRead(faces, stacked=int(rng.random() < 0.03))
                if rng.random() < 0.5:
                    shown = yield DiceThrown(faces)
            else:
                shown = yield DiceThrown(faces[:2] if rng.random() < 0.01 else faces)
                if rng.random() < 0.06:
                    shown = yield DiceRead(faces if rng.random() < 0.7 else dice(rng))
            if shown["phase"] == "suspended":
                shown = yield DiceThrown(faces)
                if rng.random() < 0.7:
                    shown = yield DiceThrown(faces)
            if shown["phase"] not in ("betting", "closed"):
                break
            if rng.random() < 0.1:
                for one in wagers(rng, BANK, 2):
                    shown = yield one
        if rng.random() < 0.02:
            shown = yield rng.choice((DiceDisturbed(), DiceThrown(dice(rng)), DiceThrown((), valid=False, reason="")))
        if shown["phase"] == "suspended" and rng.random() < 0.5:
            yield RoundVoided("")
        if rng.random() < 0.9:
            yield RoundPaid()


SAMPLES: Final[dict[str, Sample]] = {
    "angola.cussec": Sample(cussec, ([], ["small", "big", "total"])),
    "angola.french-bank": Sample(
        french_bank,
        ([], ["aces", "small"]),
        ({}, {"minimum": 10}),
        {"minimum": (0, 10), "maximum_aces": (0, 50), "maximum_small_big": (0, 1_500)},
    ),
}
