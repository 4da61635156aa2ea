"""Simulated devices: the devices' own side of each wire."""
