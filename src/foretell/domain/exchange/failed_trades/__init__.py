"""Consequences of failed trades: orders that are not to blame go back to their book."""
