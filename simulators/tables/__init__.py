"""Dealers who play with simulated devices and know what truly happened."""
