"""Settlement: the loop that puts fills on the chain."""
