"""The only SQL: rows in, values out."""
