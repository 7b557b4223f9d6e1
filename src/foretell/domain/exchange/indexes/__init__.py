"""The part of the ledger that finds the open orders of a wallet."""
