"""Values and decisions of a prediction market, without I/O."""
