"""A site of many computers on this machine: nodes of the backbone, PostgreSQL, and a demo with both."""
