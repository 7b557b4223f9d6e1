"""Tables that creation writes."""
