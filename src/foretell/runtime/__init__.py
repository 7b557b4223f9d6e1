"""Worker loops, child processes, event loop threads, caches, folders and garbage collection."""
