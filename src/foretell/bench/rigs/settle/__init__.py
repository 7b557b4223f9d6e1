"""The subject of the settlement benchmark: a chain with contracts, and an exchange that settles on it."""
