"""The jackpots process: bets and awards in, books that balance and the level of each pool out.

Called by: `feltd jackpots` (daemon/cli/jackpot.py), the demo and the campaign.
May import: broker, journal, config.model, protocols; no drivers, edge or simulators. book, ledger and prizes do no
  I/O.
"""
