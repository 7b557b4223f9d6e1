"""The journal: makes commands durable in order, and reads them back."""
