"""One wallet's collateral shared among several engines."""
