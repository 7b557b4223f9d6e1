"""Tables that trading and the engine write."""
