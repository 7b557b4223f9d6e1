"""The sums by wallet of leaderboards: how they follow the indexed blocks, and the prices."""
