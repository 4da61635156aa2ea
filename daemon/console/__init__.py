"""The console: web pages, metrics and alerts of a site, built from the messages of the broker.

Called by: `feltd console` (daemon/cli/console.py).
May import: values of jackpots, read_model, broker, journal, config, words, drivers, rules, protocols; no process.
"""
