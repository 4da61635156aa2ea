"""What people read, in three languages."""
