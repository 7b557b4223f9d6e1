"""Parts that several benchmarks share: exchanges, load, journals, tables and measures of the machine."""
