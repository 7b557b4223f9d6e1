"""The demo: markets played from creation to redemption, with every amount checked."""
