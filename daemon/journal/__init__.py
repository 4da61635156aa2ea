"""The journal: durable rows, their hash chain and signatures, retention, and reading beside the writer."""
