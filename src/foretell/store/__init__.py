"""The only SQL: modules take rows in and return values."""
