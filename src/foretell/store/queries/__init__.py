"""Read models over several tables."""
