"""Benchmarks against yardsticks of the same run."""
