"""Sends the Safe transactions that their owners signed."""
