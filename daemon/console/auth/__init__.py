"""Users, sessions and rights of the console."""
