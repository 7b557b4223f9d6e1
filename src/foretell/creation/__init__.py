"""From a signed payload to a registered market."""
