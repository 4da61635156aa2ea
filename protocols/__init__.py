"""What two programs agree upon that never import each other: bytes, events, topics. Pure; no clock, no I/O."""
