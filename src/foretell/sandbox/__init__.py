"""The sandbox for developers: `ready.json`, its clients, its first market, and the demo."""
