"""Delayed orders: those that would match at once wait in some markets, so that others can cancel first."""
