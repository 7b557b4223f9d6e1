"""The parts that all HTTP surfaces share."""
