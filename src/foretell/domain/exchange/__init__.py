"""Orders, books, the ledger and the commands that change them: pure and deterministic."""
