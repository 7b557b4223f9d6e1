"""Connections to a node over HTTP, and the bodies of its answers."""
