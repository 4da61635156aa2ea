"""The formats that programs share without importing each other: bytes of each device wire, events, topics.

Drivers, simulators, rules and daemon use it. It may import the standard library and msgspec: no clock, no I/O.
"""
