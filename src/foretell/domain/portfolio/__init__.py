"""Positions, their cost and value, and price histories."""
