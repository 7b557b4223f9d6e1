"""Request and response bodies of the trading API."""
