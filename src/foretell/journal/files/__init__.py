"""The journal in files of one machine."""
