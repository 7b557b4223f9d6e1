"""Encodings of the EVM: ABI, RLP, transactions, log filters."""
