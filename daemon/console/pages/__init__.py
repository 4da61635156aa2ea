"""The pages of the console and what keeps them live."""
