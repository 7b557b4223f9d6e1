"""Tables that the indexer writes from the chain's logs."""
