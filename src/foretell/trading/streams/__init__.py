"""WebSocket channels: market and user."""
