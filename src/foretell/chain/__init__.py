"""The only place that speaks JSON-RPC."""
