"""The games of Macau's law, one file for each text. Loaded by `rules` by name; may import rules.engine and
rules.games.
"""
