"""Follows the chain and writes what it says."""
