"""Wallets and the addresses that act for them: signers, nonces, balances."""
