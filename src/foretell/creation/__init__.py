"""Market creation: from a signed payload to a registered market."""
