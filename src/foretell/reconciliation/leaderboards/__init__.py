"""The leaderboards, computed again: standings, ranks and wins, and the marks and cursors behind them."""
