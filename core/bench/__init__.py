"""Benchmarks: what the program costs and how good its results are, measured, with the protocol."""
