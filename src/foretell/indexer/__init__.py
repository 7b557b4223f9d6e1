"""The indexer: the loop that writes the rows of the chain's logs."""
