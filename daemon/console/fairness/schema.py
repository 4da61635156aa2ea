"""The tables of the console's store for the fairness counts, and a condition for queries on them."""

from typing import Final

__all__ = ["RATED", "TABLES"]

TABLES: Final = """
CREATE TABLE IF NOT EXISTS fair_count (
  tbl TEXT NOT NULL, chart TEXT NOT NULL, device TEXT NOT NULL, life INTEGER NOT NULL, day TEXT NOT NULL,
  key TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (tbl, chart, device, life, day, key)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fair_chart (
  tbl TEXT NOT NULL, chart TEXT NOT NULL, device TEXT NOT NULL, life INTEGER NOT NULL, peak REAL NOT NULL,
  PRIMARY KEY (tbl, chart, device, life)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fair_limit (
  tbl TEXT NOT NULL, chart TEXT NOT NULL, device TEXT NOT NULL, life INTEGER NOT NULL, threshold REAL NOT NULL,
  PRIMARY KEY (tbl, chart, device, life)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fair_round (
  tbl TEXT NOT NULL, round TEXT NOT NULL, day TEXT NOT NULL, kind TEXT NOT NULL, said TEXT NOT NULL,
  facts TEXT NOT NULL, PRIMARY KEY (tbl, round)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fair_round_day ON fair_round (day);
CREATE TABLE IF NOT EXISTS fair_life (
  tbl TEXT NOT NULL, device TEXT NOT NULL, life INTEGER NOT NULL, began TEXT NOT NULL, serial TEXT NOT NULL,
  why TEXT NOT NULL, PRIMARY KEY (tbl, device, life)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fair_told (
  tbl TEXT NOT NULL, chart TEXT NOT NULL, device TEXT NOT NULL, PRIMARY KEY (tbl, chart)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fair_shoe (
  number INTEGER PRIMARY KEY, tbl TEXT NOT NULL, shoe TEXT NOT NULL, device TEXT NOT NULL, life INTEGER NOT NULL,
  day TEXT NOT NULL, decks INTEGER NOT NULL, counts TEXT NOT NULL, open INTEGER NOT NULL,
  UNIQUE (tbl, shoe)) STRICT;
CREATE TABLE IF NOT EXISTS fair_standing (
  tbl TEXT PRIMARY KEY, shoe TEXT NOT NULL, edge TEXT NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fair_deck (
  tbl TEXT NOT NULL, device TEXT NOT NULL, life INTEGER NOT NULL, day TEXT NOT NULL, bets TEXT NOT NULL,
  PRIMARY KEY (tbl, device, life, day)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fair_alarm (tbl TEXT NOT NULL, name TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS fair_position (
  source TEXT PRIMARY KEY, ranges TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
# Selects only days on which at least one card was read.
RATED: Final = (
    "AND (life, day) IN "
    "(SELECT life, day FROM fair_count WHERE tbl = ?1 AND chart = ?2 AND device = ?3 AND key = 'read')"
)
