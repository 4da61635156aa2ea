"""The MQTT broker: the session, the outbox, retained state, stale topics, gap recovery."""
