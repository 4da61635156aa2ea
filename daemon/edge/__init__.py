"""The edge process: its devices, their supervision, the order of events, commands, traces.

Called by: `feltd edge` (daemon/cli/processes.py), the demo and the campaign.
May import: broker, journal, config.model, drivers, protocols; no rules or simulators.
"""
