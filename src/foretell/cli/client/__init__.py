"""Commands of clients: markets, orders, books, wallets and whitelists, over the public APIs alone."""
