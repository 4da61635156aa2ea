"""The site as the console shows it, and the memory of the console."""
