"""The journal: durable rows, their hash chain and signatures, retention, and reading beside the writer.

Called by: broker, the processes and `feltd journal`.
May import: config.model, words, protocols.
"""
