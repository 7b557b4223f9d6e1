"""The chain of a sandbox: the plan of its contracts, those at known addresses, and its stored state."""
