"""The MQTT broker: sessions, the outbox, retained state, stale topics, gap recovery, replays, MAC keys.

Called by: edge, consumer, jackpots, console, read_model and the command line.
May import: journal, config.model, protocols.
"""
