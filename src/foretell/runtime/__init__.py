"""Worker loops, child processes, event loop threads and garbage collection."""
