"""Macau's texts, one file each."""
