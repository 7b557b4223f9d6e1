"""What every HTTP surface shares."""
