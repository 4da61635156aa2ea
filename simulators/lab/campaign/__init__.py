"""Whole lives of a pit in virtual time, with faults by seed."""
