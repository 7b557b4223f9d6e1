"""The process that answers dear reads of the data and discovery APIs."""
