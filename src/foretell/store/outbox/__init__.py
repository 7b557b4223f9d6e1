"""Tables of what is sent to the chain: by settlement, the relayer and creation."""
