"""Settlement in a child process of the one that serves."""
