"""Readers of streams, and a process that writes the same bytes without an exchange."""
