"""What a prediction market is: values and decisions, with no I/O at all."""
