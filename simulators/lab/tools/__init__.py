"""Generators of documents from the code, for `make docs`; they are not installed on table computers."""
