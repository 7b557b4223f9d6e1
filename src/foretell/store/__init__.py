"""The database adapter: the only package with SQL."""
