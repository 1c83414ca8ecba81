"""What the server's promises measure. `python -m benchmarks --help`; docs/benchmarks.md has the figures."""
