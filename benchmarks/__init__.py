"""Benchmarks of the server's promises. `python -m benchmarks --help`; docs/benchmarks.md has the figures."""
