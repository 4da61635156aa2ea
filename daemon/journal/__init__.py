"""The journal: durable rows, their hash chain and signatures, retention, and reading while the writer runs.

Called by: broker, the processes and `feltd journal`.
May import: config.model, words, protocols.
"""
