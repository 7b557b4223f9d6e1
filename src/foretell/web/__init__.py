"""The web app: its files, its configuration and, in the sandbox, wallets that sign on the server."""
