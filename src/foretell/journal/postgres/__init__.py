"""The journal in PostgreSQL, for more than one machine."""
