"""The project's own wire: topics, the envelope, events and commands."""
