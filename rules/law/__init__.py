"""The texts of the law, one file per ruleset: their publication, and in our words what each paragraph requires.

`[articles]` are kept by our rules; `[not_ours]` says what no program can keep, and why. A paragraph of an edition that
is not the ruleset's default has it before a colon: "2003:3(3)". `within` stands before each key where the verdicts cite
more than the key says. The console's pages, docs/reference/games and the tests read these files.

`proofs.json` names the tests that prove each paragraph; `make games` writes it.
"""
