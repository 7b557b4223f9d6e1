"""The part of the state with the orders that wait for their release."""
