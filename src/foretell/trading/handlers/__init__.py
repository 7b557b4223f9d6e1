"""Use cases of the trading API."""
