"""Parts that the benchmarks share: the exchange measured, its load, its journals and tables."""
