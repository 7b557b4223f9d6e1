"""The books as readers see them, and the names of markets."""
