"""The chain adapter: all JSON-RPC calls, sent transactions, deployments and the dev chain."""
