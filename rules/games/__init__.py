"""The mechanics of games that several texts share. The rulesets of the texts use it; it uses `rules/engine`."""
