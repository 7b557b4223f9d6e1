"""Benchmarks. Each measures the ceiling of its figure in the same run and prints it beside."""
