"""Worker loops, child processes, event loop threads, caches and garbage collection."""
