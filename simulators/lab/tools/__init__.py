"""Generators of documents from the code: what is written with `make docs` and no table's computer runs."""
