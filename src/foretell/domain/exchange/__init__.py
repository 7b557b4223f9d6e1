"""Order books, the ledger and the fold that applies commands to them: pure, and deterministic."""
