"""The rules process: events in, results out, exactly once in effect.

Called by: `feltd rules` (daemon/cli/processes.py), the demo and the campaign.
May import: broker, journal, config.model, words, rules, protocols; no drivers, edge or simulators.
"""
