"""The device's side of each wire."""
