"""Games that a house plays by its own rules, without a text of the law."""
