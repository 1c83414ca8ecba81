"""What the server's promises measure. `python -m benchmarks.all`; docs/benchmarks.md has the figures."""
