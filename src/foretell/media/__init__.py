"""Uploaded images, and the storage of signed data items."""
