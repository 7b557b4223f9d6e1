"""HTTP routes of the trading API."""
