"""The tables of the index, compared with a slow computation from the chain's logs."""
