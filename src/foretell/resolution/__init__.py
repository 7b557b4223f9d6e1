"""The operator's side of a resolution stack."""
