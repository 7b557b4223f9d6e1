"""The rigs of `foretell bench index`: a generated chain, and a node of its own process that serves it."""
