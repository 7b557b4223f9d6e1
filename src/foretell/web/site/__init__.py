"""The documentation's site at `/docs`, if it was built."""
