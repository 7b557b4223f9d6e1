"""Answers to the questions of markets: by a whitelisted proposer, or by the optimistic oracle."""
