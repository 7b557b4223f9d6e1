"""How others talk to an engine: requests, messages, framing, client and router."""
