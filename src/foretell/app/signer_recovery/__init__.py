"""Recovery of order signers in a process of its own."""
