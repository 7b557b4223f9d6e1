"""Integers, hashes, ids and text forms that everything else is made of."""
