"""The site as the console shows it, and the memory of the console: store, past rounds, actions.

Called by: every package of the console.
May import: values of jackpots, read_model, broker, journal, config.model, protocols.
"""
