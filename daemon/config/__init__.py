"""The configuration of a site: its model, where each value stands in the file, and its check."""
