"""Streams that survive a lost connection, and the books that they keep."""
