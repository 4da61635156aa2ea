"""The state of the site for the console, and the console's memory: store, past rounds, actions.

Called by: every package of the console.
May import: values of jackpots, read_model, broker, journal, config.model, protocols.
"""
