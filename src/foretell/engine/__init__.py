"""The matching engine as a process: its host, its server, and what it answers."""
