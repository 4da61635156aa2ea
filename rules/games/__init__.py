"""What several texts share of a game."""
