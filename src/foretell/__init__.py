"""A whole prediction-market exchange that one person can run."""
