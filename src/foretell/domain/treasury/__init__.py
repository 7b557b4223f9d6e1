"""The treasury, which allocates collateral of wallets to shards."""
