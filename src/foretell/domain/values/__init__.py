"""Amounts, hashes, ids and text forms that the other packages use."""
