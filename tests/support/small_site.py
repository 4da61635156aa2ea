"""A small site: one table of roulette with its wheel."""

__all__ = ["SMALL_SITE"]

SMALL_SITE = """\
[site]
name = "lisboa"

[edge]
name = "edge-1"
journal = "{folder}/edge.db"

[rules]
journal = "{folder}/rules.db"

[[table]]
name = "rou-1"
ruleset = "macau.roulette"

[[table.device]]
name = "wheel-1"
driver = "cammegh_ss2"
url = "serial://{folder}/tty"
"""
"""With `{folder}` for the folder of its files."""
