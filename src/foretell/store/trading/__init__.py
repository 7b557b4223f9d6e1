"""Tables that trading writes."""
