"""The contracts that we use: addresses, calldata and logs."""
