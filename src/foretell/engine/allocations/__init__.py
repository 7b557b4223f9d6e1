"""A shard's share of a wallet's collateral: requests, reports and returns."""
