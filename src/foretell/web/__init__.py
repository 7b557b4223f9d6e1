"""Web pages; reserved."""
