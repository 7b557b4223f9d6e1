"""Safe transactions that the relayer may send, and their states."""
