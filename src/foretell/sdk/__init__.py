"""Clients of the public APIs. They import nothing of the server, so any program could do the same."""
