"""The world for developers: the first market, ready.json, the demo."""
