"""The rules process: events in, results out, exactly once in effect."""
