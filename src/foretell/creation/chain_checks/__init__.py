"""Checks of what a creator did on the chain, against its plan."""
