"""HTTP connections: limits on what one may keep busy, and the fast path past the framework."""
