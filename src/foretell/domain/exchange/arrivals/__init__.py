"""The rules for orders that arrive, and what must be closed before them."""
