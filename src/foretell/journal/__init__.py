"""How a command becomes durable, and is read back."""
