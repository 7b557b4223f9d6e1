"""The matching engine as a process: its host, its server, its handlers and its protocol."""
