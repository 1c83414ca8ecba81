"""The command `python -m benchmarks`: its benchmarks, and the options that they share."""
