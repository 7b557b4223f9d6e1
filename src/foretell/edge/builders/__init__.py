"""Builders: their keys."""
