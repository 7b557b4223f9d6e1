"""The protocol of an engine: requests and replies, messages, framing, client and router."""
