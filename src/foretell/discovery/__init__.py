"""Events, markets and tags, read only."""
