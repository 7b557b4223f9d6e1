"""A market's creation: request, payload, metadata and transaction plan."""
