"""The edge process: its devices, their supervision, the order of events, commands, traces."""
