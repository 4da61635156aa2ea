"""The jackpots process: bets and awards in, books that balance and the level of each pool out."""
