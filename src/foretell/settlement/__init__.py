"""Puts fills on the chain."""
