"""The texts of the law, one file per ruleset: their publication, and a summary of the duties in each paragraph.

`[articles]` are those that the rules implement; `[not_ours]` those that no program can implement, and why. A paragraph
of another edition than the ruleset's default has the edition before a colon: "2003:3(3)". `within` is put before each
key where the verdicts cite more than the key. The console's pages, docs/reference/games and the tests read these files.

`proofs.json` names the tests that prove each paragraph; `make games` writes it.
"""
