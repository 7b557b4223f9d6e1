"""A shard's share of a wallet's collateral: requested, reported, given back."""
