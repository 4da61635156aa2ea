"""The command line: one file for each group of commands, and the check of a whole configuration.

Called by: the program `feltd` (pyproject.toml).
May import: every other package of daemon, drivers, rules and protocols; no simulators.
"""
