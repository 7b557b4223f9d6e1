"""Signing of orders: the EIP-712 structs, and the signatures of contract wallets."""
