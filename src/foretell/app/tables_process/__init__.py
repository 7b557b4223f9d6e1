"""The tables of an engine, written by a child process."""
