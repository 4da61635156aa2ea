"""The dealer's page and the device behind it."""
