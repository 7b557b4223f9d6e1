"""A complete prediction-market exchange: contracts, trading, settlement and APIs."""
