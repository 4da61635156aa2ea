"""Probabilities and house edges, computed through the rulesets."""
