"""The configuration of a site: its model, the line of each value in the file, and devices compared with games.

Called by: every process and the command line.
May import: `model`: nothing of daemon but plain data; `devices_and_games`: drivers, rules, protocols.
"""
