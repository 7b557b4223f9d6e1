"""SQLite beside PostgreSQL: its cursors, how its transactions begin, and the memory that it uses."""
