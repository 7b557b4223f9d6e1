"""The composition root: the only package that knows every product, the clock and the random ids."""
