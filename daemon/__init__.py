"""The processes: the only place with a clock, ports, files and the network."""
