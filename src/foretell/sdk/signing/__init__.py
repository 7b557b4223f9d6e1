"""Signers, and the typed data that they sign."""
