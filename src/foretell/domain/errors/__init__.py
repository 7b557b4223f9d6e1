"""Every refusal and failure that the program knows, by family."""
