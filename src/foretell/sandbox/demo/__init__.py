"""`foretell demo`: a market from creation to redemption, through the public APIs only."""
