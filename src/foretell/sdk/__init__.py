"""Clients of our own APIs, as anybody could write them: HTTP, WebSocket and JSON-RPC only."""
