"""Builds everything once: the only package that knows every part, the clock and chance."""
