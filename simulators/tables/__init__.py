"""Simulated dealers, who play with simulated devices and record the true outcomes."""
