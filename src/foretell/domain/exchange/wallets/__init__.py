"""Wallets that settlement barred from matching: the engine's side, and settlement's decisions."""
