"""Keys, orders, the matching engine, quotes and streams."""
