"""Places of public reads, and the rests of clients that read much."""
