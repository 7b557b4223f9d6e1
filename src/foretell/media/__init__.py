"""Uploads made safe, and what is stored by its hash."""
