"""The choices that the texts of blackjack leave to the house (art. 21), with their articles and exclusions."""

from typing import Annotated, Literal

from msgspec import Meta

from rules.engine.limits import HouseOptions
from rules.engine.money import Rounding
from rules.engine.ruleset import option
from rules.macau.blackjack_bets import ALWAYS, FAMILIES, PERMITTED, STREAKS


class BlackjackOptions(HouseOptions, frozen=True, forbid_unknown_fields=True):
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
        Literal["void", "valid_if_unseen"], option("art. 6(1)", "a card that the bank did not need to take")
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
