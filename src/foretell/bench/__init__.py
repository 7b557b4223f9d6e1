"""The benchmarks of `foretell bench`, one module for each figure."""
