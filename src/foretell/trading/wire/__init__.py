"""Request bodies and answers as the interfaces have them."""
