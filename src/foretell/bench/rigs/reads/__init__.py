"""A generated history of trades, and the reads that are measured on it."""
