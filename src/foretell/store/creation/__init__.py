"""Tables of market creation."""
