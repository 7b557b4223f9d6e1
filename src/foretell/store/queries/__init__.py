"""Read models over the tables of several products."""
