"""Recovery of order signers in a child process."""
