"""Portfolios, metrics and activity, read only."""
