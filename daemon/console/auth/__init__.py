"""Who may sign in to the console and do what."""
